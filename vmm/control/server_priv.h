// SPDX-License-Identifier: BSD-2-Clause
/* The state of the control server, which its methods read and change, and its parts. */
#ifndef VPROF_CONTROL_SERVER_PRIV_H
#define VPROF_CONTROL_SERVER_PRIV_H

#include <glib.h>
#include <jansson.h>

#include "sample/counter_table.h"
#include "sample/session.h"
#include "sample/trace.h"
#include "sample/trace_exits.h"

struct connection;
struct listener;
struct policy;
struct probe_hub;

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

	GPtrArray *connections;                /* of struct connection, owned */
	struct policy *policy;                 /* NULL: root and ourselves only */
	struct listener *listener;             /* NULL until control_server_listen */
	const struct connection *controller;   /* who holds the control role; NULL: nobody */
	json_t *configuration;                 /* an object: the session's keys that were set */
	uint64_t rings_of;                     /* the session whose rings somebody has by descriptor; 0: none */
	const struct connection *rings_holder; /* the last who asked for them */
	uint64_t flushes;                      /* that were asked for */
	guint wait_timer;                      /* while requests wait */
	guint stall_timer;                     /* while a session that may stall runs */

	struct phase_limit phases;
	uint64_t lost_told[GUEST_VCPUS_MAX]; /* dropbuf_sample as the clients know it */
	guint lost_timer;

	void (*quit)(void *data);
	void *quit_data;
	bool quitting;
	guint quit_source;
};

/* listener.c: a socket that clients connect to; `connected` gets the descriptor of each one, which is then its own. */
/* `others` may connect, too: the socket's file and a folder that is made for it are open to them. */
struct listener *listener_new(const char *path, bool others, void (*connected)(void *data, int fd), void *data,
                              GError **error);
struct listener *listener_new_fd(int fd, void (*connected)(void *data, int fd), void *data, GError **error);
void listener_free(struct listener *listener);

/* request.c: from a line to its method, and back to a line. */
enum request_outcome {
	REQUEST_ANSWERED,
	REQUEST_WAITS, /* it is the connection's `waiting`; request_retry executes it again */
	REQUEST_QUIT,  /* answered, and the engine is to end */
};
/* Answers one line of a client; a line that is no request is the last that is taken. */
enum request_outcome request_answer(struct connection *connection, const char *line, size_t length);
/* Executes the request that waits again. */
void request_retry(struct connection *connection);
/* Says why what came is no request, and takes no more. */
void request_refuse(struct connection *connection, const char *why);

#endif
