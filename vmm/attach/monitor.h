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

struct monitor;

/* What QEMU says unasked, by its name ("STOP"). Called with the monitor locked, on the thread that reads its answer. */
typedef void (*monitor_event)(const char *name, void *data);

/* How a monitor is reached. */
struct monitor_transport {
	/* One request (a JSON line) and its answer; new string. Called with the monitor locked. */
	char *(*transact)(struct monitor *monitor, const char *request, GError **error);
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

/* The "return" of a QMP command; new reference. `arguments` are stolen and may be NULL. */
json_t *monitor_execute(struct monitor *monitor, const char *command, json_t *arguments, GError **error);

/* What a command of the human monitor prints; new string. */
char *monitor_human(struct monitor *monitor, const char *command, GError **error);

/* A QMP socket (`-qmp unix:PATH,server=on,wait=off`), which serves one client at a time. */
struct monitor *monitor_open_socket(const char *path, GError **error);

#endif
