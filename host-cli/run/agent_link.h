// SPDX-License-Identifier: BSD-2-Clause
/* The host's end of the connection to the agent in a guest: a socket and its buffers. */
#ifndef VPROF_CLI_RUN_AGENT_LINK_H
#define VPROF_CLI_RUN_AGENT_LINK_H

#include <poll.h>
#include <sys/types.h>

#include "lib/agent/agent_stream.h"

struct agent_link {
	int fd; /* owned; -1: closed */
	struct agent_stream *stream;
	GByteArray *to_agent; /* for agent_say_*; goes with the next agent_link_transmit */
};

void agent_link_init(struct agent_link *link, int fd);
void agent_link_close(struct agent_link *link);
void agent_link_clear(struct agent_link *link);

struct pollfd agent_link_poll(const struct agent_link *link, short events);
/* Receives what is available into `stream`, without blocking. Returns the result of recv(2). */
ssize_t agent_link_receive(struct agent_link *link);
/* Sends what the socket takes without blocking. */
void agent_link_transmit(struct agent_link *link);

#endif
