// SPDX-License-Identifier: BSD-2-Clause
/* The state of the control server, which methods read and change; and what it is made of. */
#ifndef VPROF_CONTROL_SERVER_PRIV_H
#define VPROF_CONTROL_SERVER_PRIV_H

#include <glib.h>
#include <jansson.h>

#include "sample/counter_table.h"
#include "sample/session.h"
#include "sample/trace_exits.h"
#include "stream/trace.h"

struct connection;
struct listener;
struct policy;
struct probe_hub;
struct task_look;

/* Counts the guest-phase events of one second (events.c). */
struct phase_limit {
	int64_t second;
	unsigned sent;
	uint64_t dropped;
};

struct control_server {
	struct guest *guest;
	struct session *session;
	struct probe_hub *probes;
	struct counter_table *counters;
	struct trace *trace;
	struct trace_exits *trace_exits; /* NULL: not traced */
	int64_t started_us;              /* g_get_monotonic_time() */
	uid_t user;                      /* of the engine, when it was started: it may take another afterwards */

	GPtrArray *connections;                /* of struct connection, owned */
	struct policy *policy;                 /* NULL: only root and the user of the engine may connect */
	struct listener *listener;             /* NULL until control_server_listen */
	const struct connection *controller;   /* holds the control role; NULL: no client does */
	struct kernel_file *kernel_file;       /* of mapping-read; NULL: not asked for yet */
	struct task_look *look;                /* of query-tasks, being read; NULL: none */
	uint64_t look_number;                  /* of the last one */
	json_t *configuration;                 /* an object: the configuration keys that are set */
	uint64_t rings_of;                     /* the session of the rings that a client has by descriptor; 0: none */
	const struct connection *rings_holder; /* the last client that asked for them */
	uint64_t flushes;                      /* number of session-flush so far */
	uint64_t requests, errors;             /* of all clients so far, and how many were refused */
	guint wait_timer;                      /* while requests wait */
	guint stall_timer;                     /* while a session or a counter that may stall runs */

	struct phase_limit phases;
	uint64_t lost_told[GUEST_VCPUS_MAX]; /* dropbuf_sample that clients were told */
	guint lost_timer;

	void (*quit)(void *data, bool at_once);
	void *quit_data;
	bool quitting, quitting_at_once;
	guint quit_source;
};

/* methods_mapping.c. NULL is allowed. */
void kernel_file_free(struct kernel_file *file);

/* listener.c: a socket that clients connect to. `connected` is called with the descriptor of each client, and owns it.
 */
/* With `others`, all users can reach the socket's file, and a folder that is made for it. */
struct listener *listener_new(const char *path, bool others, void (*connected)(void *data, int fd), void *data,
                              GError **error);
struct listener *listener_new_fd(int fd, void (*connected)(void *data, int fd), void *data, GError **error);
void listener_free(struct listener *listener);

/* request.c: from a line to its method, and back to a line. */
enum request_outcome {
	REQUEST_ANSWERED,
	REQUEST_WAITS, /* connection.waiting has it; request_retry executes it again */
	REQUEST_QUIT,  /* answered, and the engine is to end at once */
	REQUEST_LEAVE, /* answered, and the engine is to end when nothing is left to read */
};
/* Answers one line of a client. A line that is not a request ends the connection. */
enum request_outcome request_answer(struct connection *connection, const char *line, size_t length);
/* Executes the request that waits again. */
void request_retry(struct connection *connection);
/* Answers input that is not a request with the reason, and ends the connection. */
void request_refuse(struct connection *connection, const char *why);

#endif
