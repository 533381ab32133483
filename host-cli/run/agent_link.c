// SPDX-License-Identifier: BSD-2-Clause
#include "run/agent_link.h"

#include <sys/socket.h>
#include <unistd.h>

#define RECEIVE_BYTES 8192u

void agent_link_init(struct agent_link *link, int fd)
{
	*link = (struct agent_link){.fd = fd, .stream = agent_stream_new(), .to_agent = g_byte_array_new()};
}

void agent_link_close(struct agent_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

void agent_link_clear(struct agent_link *link)
{
	agent_link_close(link);
	agent_stream_free(link->stream);
	g_byte_array_unref(link->to_agent);
}

struct pollfd agent_link_poll(const struct agent_link *link, short events)
{
	return (struct pollfd){.fd = link->fd, .events = (short)(events | (link->to_agent->len != 0 ? POLLOUT : 0))};
}

ssize_t agent_link_receive(struct agent_link *link)
{
	uint8_t bytes[RECEIVE_BYTES];
	ssize_t n = recv(link->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		agent_stream_put(link->stream, bytes, (size_t)n);
	return n;
}

void agent_link_transmit(struct agent_link *link)
{
	if (link->to_agent->len == 0)
		return;
	ssize_t n = send(link->fd, link->to_agent->data, link->to_agent->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		g_byte_array_remove_range(link->to_agent, 0, (guint)n);
}
