// SPDX-License-Identifier: BSD-2-Clause
#include "agent_marks.h"

#include <errno.h>

#include "agent_clock.h"
#include "agent_link.h"
#include "lib/client/socket.h"
#include "message.h"

G_DEFINE_QUARK(vprof_agent_marks_error, agent_marks_error)

struct agent_marks {
	struct agent_link link; /* closed: by QEMU, or because what came is no agent's */
	struct capture *capture;
	struct agent_clock clock;
	bool greeted;
};

struct agent_marks *agent_marks_new(const char *path, struct capture *capture, GError **error)
{
	struct agent_marks *marks;
	int fd = client_socket_connect(path);

	if (fd < 0) {
		g_set_error(error, AGENT_MARKS_ERROR, AGENT_MARKS_ERROR_CONNECT,
		            "cannot connect to %s: %s; it is the source of the guest's <channel type='unix'> whose "
		            "target is org.vprof.agent.0, and takes one client at a time",
		            path, g_strerror(errno));
		return NULL;
	}
	marks = g_new0(struct agent_marks, 1);
	marks->capture = capture;
	agent_link_init(&marks->link, fd);
	return marks;
}

void agent_marks_free(struct agent_marks *marks)
{
	if (marks == NULL)
		return;
	agent_link_clear(&marks->link);
	g_free(marks);
}

/* ---- what the agent says ---- */

static void take_mark(struct agent_marks *marks, const struct vprof_agent_mark *mark, const char *name)
{
	uint64_t time_ns;
	bool begins;

	if (agent_clock_mark(&marks->clock, mark, &begins, &time_ns))
		capture_mark(marks->capture, name, begins, time_ns);
}

static void take_message(struct agent_marks *marks, const struct agent_message *message)
{
	switch (message->type) {
	case VPROF_AGENT_HELLO: /* also of an agent that was started anew, as after a reset */
		marks->greeted = true;
		marks->clock = (struct agent_clock){0};
		agent_clock_ask(&marks->clock, marks->link.to_agent);
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
	ssize_t n = agent_link_receive(&marks->link);
	struct agent_message message;
	g_autoptr(GError) error = NULL;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		agent_link_close(&marks->link);
	if (n <= 0)
		return;
	while (agent_stream_next(marks->link.stream, &message, &error))
		take_message(marks, &message);
	if (error != NULL) {
		warn("%s; its phases are no longer recorded", error->message);
		agent_link_close(&marks->link);
	}
}

/* ---- the loop's view ---- */

struct pollfd agent_marks_poll(const struct agent_marks *marks)
{
	return agent_link_poll(&marks->link, POLLIN);
}

void agent_marks_serve(struct agent_marks *marks, const struct pollfd *entry)
{
	if (marks->link.fd >= 0 && entry->revents != 0)
		receive(marks);
	if (marks->link.fd < 0)
		return;
	if (marks->clock.pongs != 0 && agent_clock_is_due(&marks->clock))
		agent_clock_ask(&marks->clock, marks->link.to_agent);
	agent_link_transmit(&marks->link);
}

void agent_marks_say_end(const struct agent_marks *marks)
{
	if (!marks->greeted)
		warn("no agent in the guest has said anything; does `vprof-agent --device "
		     "/dev/virtio-ports/org.vprof.agent.0` run there?");
}
