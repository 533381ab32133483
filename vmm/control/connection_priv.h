// SPDX-License-Identifier: BSD-2-Clause
/* The connection of one client. Like all of the control server, it runs on the main thread. */
#ifndef VPROF_CONTROL_CONNECTION_PRIV_H
#define VPROF_CONTROL_CONNECTION_PRIV_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/socket.h>

#include "control/policy.h"
#include "lib/client/line.h"

#define CONTROL_REQUESTS_PER_SECOND 2000u   /* of one client; requests beyond that wait in its socket */
#define CONTROL_REQUESTS_BURST 200u         /* that may come at once */
#define CONTROL_OUTPUT_BYTES_MAX (1u << 20) /* unread by one client before it is disconnected */

struct connection;
struct control_server;
struct probe_client;

/* What the server does for a connection. */
struct connection_ops {
	/* A line has come: `length` bytes without the newline. */
	void (*line)(struct connection *connection, const char *line, size_t length);
	/* More bytes have come than a line may have. */
	void (*line_too_long)(struct connection *connection);
	/* The connection is over: frees it. */
	void (*over)(struct connection *connection);
};

struct connection {
	struct control_server *server;
	const struct connection_ops *ops;
	int fd;
	bool owner;
	struct ucred peer;
	enum control_role permitted; /* the highest role that its uid may have */
	bool negotiated;
	bool broken;                 /* nothing more goes in or out */
	bool closing;                /* nothing more comes in; over once `output` has gone out */
	struct probe_client *probes; /* NULL: it has had none */
	struct line_buffer input;
	GQueue output; /* of struct output */
	size_t output_bytes;
	json_t *waiting; /* a request that is executed again until it has an answer */
	int64_t wait_until_us;
	uint64_t wait_flushes;     /* control_server.flushes when it came */
	uint64_t requests, errors; /* it has sent, and of them were refused */
	/* What it has read in parts (unread.c). */
	uint64_t samples_from, samples_from_of; /* a samples-read that waits: where it began, in which session */
	uint64_t samples_of;                    /* the session of `samples_unread` */
	uint64_t samples_unread;                /* bit n: it has read samples of vCPU n, and not up to their end */
	uint32_t counter_rings;                 /* bit n: it has the rings of counter n */
	bool trace_read;                        /* it reads the trace, next at trace_next */
	uint64_t trace_next;
	int64_t busy_until_us; /* when its requests so far end at CONTROL_REQUESTS_PER_SECOND */
	GSource *source;
	gpointer fd_tag;
};

/* Takes over `fd`. The connection is freed by ops->over, and by control_server_free; other code only marks it as
 * broken. */
struct connection *connection_new(struct control_server *server, const struct connection_ops *ops, int fd, bool owner,
                                  enum control_role permitted);
void connection_free(struct connection *connection);

/* Queues one JSON object as a line, with n_fds descriptors (borrowed). Fails if the object does not fit into a line. */
bool connection_send(struct connection *connection, const json_t *object, const int *fds, size_t n_fds, GError **error);
/* Sends as much of the queue as the socket takes now. */
void connection_flush(struct connection *connection);
/* Sets the request that is executed again (takes a new reference); NULL: none. */
void connection_set_waiting(struct connection *connection, json_t *request, uint64_t flushes);
bool connection_has_output(const struct connection *connection);

#endif
