// SPDX-License-Identifier: BSD-2-Clause
/* Markers: the pipe for programs (vprof/agent.h), and the command that writes to it. */
#ifndef VPROF_AGENT_MARKER_H
#define VPROF_AGENT_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/agent.h>

struct marker {
	struct vprof_agent_mark mark;
	char name[VPROF_AGENT_NAME_BYTES_MAX + 1];
};

#define MARKER_LINE_BYTES 128u

struct marker_pipe {
	int fd; /* -1: there is none */
	char line[MARKER_LINE_BYTES];
	size_t line_n;
	bool too_long; /* the rest of the line is skipped */
	bool removed;
};

/* Creates the pipe, in place of an old one. False with errno. */
bool marker_pipe_open(struct marker_pipe *pipe);
/* Removes its name: what was written before can still be read. */
void marker_pipe_remove(struct marker_pipe *pipe);
void marker_pipe_close(struct marker_pipe *pipe);

enum marker_line { MARKER_NONE, MARKER_READ, MARKER_MALFORMED };

/* Reads the next line, if it is complete. `now_ns`: the time of a marker without one. */
enum marker_line marker_pipe_next(struct marker_pipe *pipe, uint64_t now_ns, struct marker *marker);

/* One line, without its end. */
bool marker_parse(const char *line, uint64_t now_ns, struct marker *marker);

/* `vprof-agent mark NAME begin|end`; returns the exit status. */
int marker_command(const char *name, const char *kind);

#endif
