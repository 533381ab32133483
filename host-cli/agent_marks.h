// SPDX-License-Identifier: BSD-2-Clause
/*
 * The phases that the agent in an attached guest tells of: a conversation over the host's end of its virtio-serial
 * port, which is a socket of QEMU's. The guest runs on whether there is an agent or not, and so does its recording.
 */
#ifndef VPROF_CLI_AGENT_MARKS_H
#define VPROF_CLI_AGENT_MARKS_H

#include <glib.h>
#include <poll.h>

#include "run_record.h"

#define AGENT_MARKS_ERROR agent_marks_error_quark()
GQuark agent_marks_error_quark(void);
enum agent_marks_error {
	AGENT_MARKS_ERROR_CONNECT, /* nobody listens on the socket, or it may not be used */
};

struct agent_marks;

/* Connects to the socket `path`; marks go to `capture`, which is borrowed. */
struct agent_marks *agent_marks_new(const char *path, struct capture *capture, GError **error);
void agent_marks_free(struct agent_marks *marks);

/* What to wait for; agent_marks_serve takes the same entry after poll(2), also when it was not ready. */
struct pollfd agent_marks_poll(const struct agent_marks *marks);
void agent_marks_serve(struct agent_marks *marks, const struct pollfd *entry);

/* Says on standard error that no agent has answered, if that is so. */
void agent_marks_say_end(const struct agent_marks *marks);

#endif
