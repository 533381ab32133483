// SPDX-License-Identifier: BSD-2-Clause
/*
 * QEMU's machine protocol (QMP) to one process, through libvirt or on a socket of its own. Any thread; one command at a
 * time. What QEMU answers is not trusted to be anything but JSON.
 */
#ifndef VPROF_ATTACH_MONITOR_H
#define VPROF_ATTACH_MONITOR_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define MONITOR_ERROR monitor_error_quark()
GQuark monitor_error_quark(void);
enum monitor_error {
	MONITOR_ERROR_CONNECT, /* it does not exist, or access is denied */
	MONITOR_ERROR_GONE,    /* was there; may come back (libvirtd restarted) or not (QEMU ended) */
	MONITOR_ERROR_COMMAND, /* QEMU refused the command */
	MONITOR_ERROR_ANSWER,  /* what came back is no QMP */
};

#define MONITOR_LINE_BYTES_MAX (4u << 20) /* `info mtree -f` of a big machine has some 100 KiB */
#define MONITOR_TIMEOUT_MS 5000

/* All that is asked of QEMU; nothing of it changes the guest. */
enum monitor_command {
	MONITOR_CAPABILITIES = 1, /* qmp_capabilities: what a QMP socket begins with */
	MONITOR_CPUS,             /* query-cpus-fast */
	MONITOR_STATUS,           /* query-status */
	MONITOR_KVM,              /* query-kvm */
	MONITOR_MEMORY_SIZE,      /* query-memory-size-summary */
	MONITOR_CONFIDENTIAL,     /* qom-get: the machine's confidential-guest-support, a path or "" */
	MONITOR_TYPE,             /* qom-get: the type of the object at `path` */
	MONITOR_STATISTICS_NAMES, /* query-stats-schemas, of KVM */
	MONITOR_STATISTICS,       /* query-stats, KVM's of the vCPU at `path` */
	MONITOR_MEMORY_MAP,       /* info mtree -f, text */
	MONITOR_ADDRESS,          /* gpa2hva `address`, text */
	MONITOR_REGISTERS,        /* info registers -a, text */
	MONITOR_COMMANDS,         /* how many and one */
};

#define MONITOR_PATH_BYTES 240u

/* Of one size, as it also goes between processes (attach/asker.h). What is not used is 0. */
struct monitor_request {
	uint32_t command;
	uint32_t reserved;
	uint64_t address;
	char path[MONITOR_PATH_BYTES]; /* of an object of QEMU's, "/machine/unattached/device[0]" */
};
_Static_assert(sizeof(struct monitor_request) == 256, "what goes from the engine to its asker");

/* Whether it is one of these, with a path of letters, digits and "/-._[]" exactly where it takes one. */
bool monitor_request_valid(const struct monitor_request *request);

/* It as a line of QMP, without the line's end; new string. */
char *monitor_request_text(const struct monitor_request *request);

struct monitor;

/* What QEMU says unasked, by its name ("STOP"). Called with the monitor locked, on the thread that reads its answer. */
typedef void (*monitor_event)(const char *name, void *data);

/* How a monitor is reached. */
struct monitor_transport {
	/* The answer to a request, a line of QMP; new string. Called with the monitor locked. */
	char *(*transact)(struct monitor *monitor, const struct monitor_request *request, GError **error);
	void (*close)(struct monitor *monitor);
};

/* A transport embeds it as its first member. */
struct monitor {
	const struct monitor_transport *transport; /* [I] */
	GMutex lock;                               /* one command at a time */
	monitor_event event;                       /* [I] NULL: none */
	void *event_data;                          /* [I] */
};

void monitor_init(struct monitor *monitor, const struct monitor_transport *transport);
void monitor_free(struct monitor *monitor);

/*
 * Before any other thread uses it. Events are read together with answers, so they are as late as the next command; a
 * monitor through libvirt has none.
 */
void monitor_listen(struct monitor *monitor, monitor_event event, void *data);

/* The "return" of its answer; new reference. */
json_t *monitor_execute(struct monitor *monitor, const struct monitor_request *request, GError **error);

/* The same of a command that takes nothing. */
json_t *monitor_ask(struct monitor *monitor, enum monitor_command command, GError **error);

/* What a command of the human monitor prints; new string. */
char *monitor_human(struct monitor *monitor, const struct monitor_request *request, GError **error);

/* A QMP socket (`-qmp unix:PATH,server=on,wait=off`), which serves one client at a time. */
struct monitor *monitor_open_socket(const char *path, GError **error);

#endif
