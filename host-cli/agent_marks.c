// SPDX-License-Identifier: BSD-2-Clause
#include "agent_marks.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent_clock.h"
#include "message.h"

#define RECEIVE_BYTES 16384u

G_DEFINE_QUARK(vprof_agent_marks_error, agent_marks_error)

struct agent_marks {
	int fd; /* -1: QEMU has closed it, or what came is no agent's */
	struct capture *capture;
	struct agent_stream *stream;
	GByteArray *to_agent;
	struct agent_clock clock;
	bool greeted;
};

static bool socket_connect(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (g_strlcpy(address.sun_path, path, sizeof(address.sun_path)) < sizeof(address.sun_path))
		return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
	errno = ENAMETOOLONG;
	return false;
}

struct agent_marks *agent_marks_new(const char *path, struct capture *capture, GError **error)
{
	struct agent_marks *marks = g_new0(struct agent_marks, 1);

	marks->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	marks->capture = capture;
	marks->stream = agent_stream_new();
	marks->to_agent = g_byte_array_new();
	if (socket_connect(marks->fd, path))
		return marks;
	g_set_error(error, AGENT_MARKS_ERROR, AGENT_MARKS_ERROR_CONNECT,
	            "cannot connect to %s: %s; it is the source of the guest's <channel type='unix'> whose target is "
	            "org.vprof.agent.0, and takes one client at a time",
	            path, g_strerror(errno));
	agent_marks_free(marks);
	return NULL;
}

static void leave(struct agent_marks *marks)
{
	if (marks->fd >= 0)
		close(marks->fd);
	marks->fd = -1;
}

void agent_marks_free(struct agent_marks *marks)
{
	if (marks == NULL)
		return;
	leave(marks);
	agent_stream_free(marks->stream);
	g_byte_array_unref(marks->to_agent);
	g_free(marks);
}

/* ---- what the agent says ---- */

/* Before the first answer about its clock, nobody knows when it was. */
static void take_mark(struct agent_marks *marks, const struct vprof_agent_mark *mark, const char *name)
{
	if ((mark->kind == VPROF_AGENT_MARK_BEGIN || mark->kind == VPROF_AGENT_MARK_END) && marks->clock.clock.known)
		capture_mark(marks->capture, name, mark->kind == VPROF_AGENT_MARK_BEGIN,
		             guest_clock_to_host(&marks->clock.clock, mark->time_ns));
}

static void take_message(struct agent_marks *marks, const struct agent_message *message)
{
	switch (message->type) {
	case VPROF_AGENT_HELLO: /* also of an agent that was started anew, as after a reset */
		marks->greeted = true;
		marks->clock = (struct agent_clock){0};
		agent_clock_ask(&marks->clock, marks->to_agent);
		break;
	case VPROF_AGENT_PONG:
		agent_clock_take(&marks->clock, &message->pong);
		break;
	case VPROF_AGENT_MARK:
		take_mark(marks, &message->mark, message->text);
		break;
	case VPROF_AGENT_COMPLAINT:
		warn("the agent in the guest: %s", message->text);
		break;
	default: /* answers to what was not asked */
		break;
	}
}

static void receive(struct agent_marks *marks)
{
	uint8_t bytes[RECEIVE_BYTES];
	ssize_t n = recv(marks->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct agent_message message;
	g_autoptr(GError) error = NULL;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		leave(marks);
	if (n <= 0)
		return;
	agent_stream_put(marks->stream, bytes, (size_t)n);
	while (agent_stream_next(marks->stream, &message, &error))
		take_message(marks, &message);
	if (error != NULL) {
		warn("%s; its phases are no longer recorded", error->message);
		leave(marks);
	}
}

static void transmit(struct agent_marks *marks)
{
	ssize_t n = send(marks->fd, marks->to_agent->data, marks->to_agent->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		g_byte_array_remove_range(marks->to_agent, 0, (guint)n);
}

/* ---- the loop's view ---- */

struct pollfd agent_marks_poll(const struct agent_marks *marks)
{
	return (struct pollfd){.fd = marks->fd, .events = (short)(POLLIN | (marks->to_agent->len != 0 ? POLLOUT : 0))};
}

void agent_marks_serve(struct agent_marks *marks, const struct pollfd *entry)
{
	if (marks->fd >= 0 && entry->revents != 0)
		receive(marks);
	if (marks->fd < 0)
		return;
	if (marks->clock.pongs != 0 && agent_clock_is_due(&marks->clock))
		agent_clock_ask(&marks->clock, marks->to_agent);
	if (marks->to_agent->len != 0)
		transmit(marks);
}

void agent_marks_say_end(const struct agent_marks *marks)
{
	if (!marks->greeted)
		warn("no agent in the guest has said anything; does `vprof-agent --device "
		     "/dev/virtio-ports/org.vprof.agent.0` run there?");
}
