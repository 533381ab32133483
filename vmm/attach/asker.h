// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process beside vprof-attach that has what an engine should not have which reads a guest's memory: libvirt's
 * connection, by which any domain can be changed, or the socket of QEMU's monitor. It is made while the engine has one
 * thread, and before a guest is looked at; it ends with the engine. It takes requests of one fixed size, each of which
 * must be one of monitor.h; QEMU's answers and libvirt's events come back. It reads nothing of a guest.
 */
#ifndef VPROF_ATTACH_ASKER_H
#define VPROF_ATTACH_ASKER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "attach/monitor.h"

struct asker_config {
	const char *domain;      /* name, UUID or id; NULL: by qmp_path */
	const char *connect_uri; /* of libvirt; NULL: its default */
	const char *qmp_path;    /* QMP socket, without a domain */
	bool no_monitor;         /* the domain's is left alone; libvirt then asks for less */
	/* In the process, when it has connected: gives up what it does not need. False ends it. NULL: nothing is. */
	bool (*confine)(void);
};

struct asker;

/* While the process has one thread. NULL, with errno: there is no process. */
struct asker *asker_start(const struct asker_config *config);
/* The process ends by itself, when it has done what it does. */
void asker_free(struct asker *asker);
/* The same once asker_wait has returned; waits for the process's end. */
void asker_end(struct asker *asker);

#define ASKER_NAME_BYTES 256u
#define ASKER_WORD_BYTES 40u

/* What there is at the other end. Texts are libvirt's; all are empty, and numbers 0, with a QMP socket. */
struct asker_description {
	char name[ASKER_NAME_BYTES];
	char uuid[ASKER_WORD_BYTES];
	char type[ASKER_WORD_BYTES];     /* "kvm", "qemu": in the domain's XML */
	char security[ASKER_WORD_BYTES]; /* "sev", "tdx", ...: how its memory is encrypted, as its XML says; "": not */
	uint32_t vsock_cid;              /* of its vsock device; 0: it has none */
	uint32_t vcpus_max;              /* that it can have; 0: not known */
};

/*
 * What libvirt tells about a domain, in one word of its own ("started", "suspended", "reset", "shutdown", ...);
 * "reconnected" when it could not tell for a while, because libvirtd was away.
 */
typedef void (*asker_event)(const char *what, void *data);

/*
 * Waits until it has connected; NULL, with an error of domain.h or monitor.h: it could not. From then on `event` is
 * called from the default GMainContext with a domain's events; those of a QMP socket come by monitor_listen.
 */
const struct asker_description *asker_wait(struct asker *asker, asker_event event, void *data, GError **error);

/* The monitor, which is the asker's and lives as long. Once asker_wait has returned. */
struct monitor *asker_monitor(struct asker *asker);

/* ---- the other side, for asker_process.c ---- */

enum asker_kind { ASKER_HELLO = 1, ASKER_ANSWER, ASKER_FAILED, ASKER_EVENT };

/* Before each message to the engine, and the bytes that follow. */
struct asker_header {
	uint32_t kind;
	uint32_t code;  /* ASKER_FAILED: of the error */
	uint32_t bytes; /* ASKER_HELLO: a description; else text without a NUL */
	uint32_t is_domain_error;
};

/* An event of libvirt's; with a NUL. */
struct asker_word {
	char text[ASKER_WORD_BYTES];
};

/* Connects, answers, ends. requests: a stream of either side's; events: words to the engine. */
G_GNUC_NORETURN void asker_serve(const struct asker_config *config, int requests, int events);

#endif
