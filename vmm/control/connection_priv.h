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

#define CONTROL_REQUESTS_PER_SECOND 2000u   /* of one client; what it sends faster waits in its socket */
#define CONTROL_REQUESTS_BURST 200u         /* that may come faster */
#define CONTROL_OUTPUT_BYTES_MAX (1u << 20) /* unread by one client before it is disconnected */

struct connection;
struct control_server;
struct probe_client;

/* What the server does for a connection. */
struct connection_ops {
	/* A line has come; it is not terminated, and `length` has no newline. */
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
	enum control_role permitted; /* the most that its uid may have */
	bool negotiated;
	bool broken;                 /* nothing more goes in or out */
	bool closing;                /* nothing more comes in; over once `output` has gone out */
	struct probe_client *probes; /* NULL: it had none yet */
	struct line_buffer input;
	GQueue output; /* of struct output */
	size_t output_bytes;
	json_t *waiting; /* a request that is executed again until it has an answer */
	int64_t wait_until_us;
	uint64_t wait_flushes; /* control_server.flushes when it came */
	int64_t busy_until_us; /* the time that its requests so far may have taken (CONTROL_REQUESTS_PER_SECOND) */
	GSource *source;
	gpointer fd_tag;
};

/* Takes over `fd`. The connection is freed by ops->over, and by control_server_free; code that finds it broken does
 * not free it. */
struct connection *connection_new(struct control_server *server, const struct connection_ops *ops, int fd, bool owner,
                                  enum control_role permitted);
void connection_free(struct connection *connection);

/* Queues one JSON object as a line, and n_fds descriptors (borrowed) with it. Fails when a line cannot hold it. */
bool connection_send(struct connection *connection, const json_t *object, const int *fds, size_t n_fds, GError **error);
/* Hands to the socket what it takes now. */
void connection_flush(struct connection *connection);
/* The request that is executed again (a new reference is taken), or NULL: none. */
void connection_set_waiting(struct connection *connection, json_t *request, uint64_t flushes);
bool connection_has_output(const struct connection *connection);

#endif
