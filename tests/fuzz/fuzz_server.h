// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control server with one client, through a socket. Guest and session do nothing but keep their state, as inputs
 * must give the same result each time.
 */
#ifndef VPROF_TEST_FUZZ_FUZZ_SERVER_H
#define VPROF_TEST_FUZZ_FUZZ_SERVER_H

#include <jansson.h>

#include "control/server.h"
#include "lib/client/line.h"

struct fuzz_server {
	struct guest guest;
	struct session *session;
	struct control_server *server;
	int fd;
	bool open; /* the server has not closed the connection */
	struct line_buffer lines;
	void (*on_line)(const json_t *object, void *data); /* NULL: they are not wanted */
	void *data;
};

/* Every line that comes back must be a JSON object, of which on_line is told. */
struct fuzz_server *fuzz_server_open(void (*on_line)(const json_t *object, void *data), void *data);
/* Returns once the server has nothing left to do. */
void fuzz_server_send(struct fuzz_server *server, const void *bytes, size_t size);
/* The guest must end with it. */
void fuzz_server_close(struct fuzz_server *server);

#endif
