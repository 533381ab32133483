// SPDX-License-Identifier: BSD-2-Clause
#include "marker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

static const struct {
	const char *word;
	enum vprof_agent_mark_kind kind;
} kinds[] = {
	{"begin", VPROF_AGENT_MARK_BEGIN},
	{"end", VPROF_AGENT_MARK_END},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

bool marker_pipe_open(struct marker_pipe *pipe)
{
	*pipe = (struct marker_pipe){.fd = -1};
	if (unlink(VPROF_AGENT_MARK_PATH) != 0 && errno != ENOENT)
		return false;
	if (mkfifo(VPROF_AGENT_MARK_PATH, 0622) != 0 || chmod(VPROF_AGENT_MARK_PATH, 0622) != 0)
		return false;
	/* Opened for writing, too: the pipe never ends, and programs may write before there is a reader. */
	pipe->fd = open(VPROF_AGENT_MARK_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return pipe->fd >= 0;
}

void marker_pipe_remove(struct marker_pipe *pipe)
{
	if (pipe->fd >= 0 && !pipe->removed)
		unlink(VPROF_AGENT_MARK_PATH);
	pipe->removed = true;
}

void marker_pipe_close(struct marker_pipe *pipe)
{
	marker_pipe_remove(pipe);
	if (pipe->fd >= 0)
		close(pipe->fd);
	pipe->fd = -1;
}

/* "begin NAME", "end NAME". */
static bool kind_parse(const char *text, struct marker *marker, const char **name)
{
	for (size_t i = 0; i < KINDS; i++) {
		size_t n = strlen(kinds[i].word);

		if (strncmp(text, kinds[i].word, n) != 0 || text[n] != ' ')
			continue;
		marker->mark.kind = kinds[i].kind;
		*name = text + n + 1;
		return true;
	}
	return false;
}

static bool name_is_fine(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return false;
	return n != 0 && n <= VPROF_AGENT_NAME_BYTES_MAX;
}

bool marker_parse(const char *line, uint64_t now_ns, struct marker *marker)
{
	const char *name;

	*marker = (struct marker){.mark.time_ns = now_ns};
	if (*line >= '0' && *line <= '9') {
		char *end;

		errno = 0;
		marker->mark.time_ns = strtoull(line, &end, 10);
		if (errno != 0 || *end != ' ')
			return false;
		line = end + 1;
	}
	if (!kind_parse(line, marker, &name) || !name_is_fine(name))
		return false;
	memcpy(marker->name, name, strlen(name) + 1);
	return true;
}

enum marker_line marker_pipe_next(struct marker_pipe *pipe, uint64_t now_ns, struct marker *marker)
{
	char byte;

	while (read(pipe->fd, &byte, 1) == 1) {
		if (byte != '\n') {
			pipe->too_long |= pipe->line_n == sizeof(pipe->line) - 1;
			if (!pipe->too_long)
				pipe->line[pipe->line_n++] = byte;
			continue;
		}
		/* A NUL within the line ends the text early. */
		bool whole = !pipe->too_long && !memchr(pipe->line, '\0', pipe->line_n);

		pipe->line[pipe->line_n] = '\0';
		pipe->line_n = 0;
		pipe->too_long = false;
		return whole && marker_parse(pipe->line, now_ns, marker) ? MARKER_READ : MARKER_MALFORMED;
	}
	return MARKER_NONE;
}

static bool line_write(const char *line)
{
	int fd = open(VPROF_AGENT_MARK_PATH, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	bool written;

	if (fd < 0) {
		fprintf(stderr, "vprof-agent: cannot open %s: %s; does the agent run?\n", VPROF_AGENT_MARK_PATH,
		        strerror(errno));
		return false;
	}
	written = write(fd, line, strlen(line)) == (ssize_t)strlen(line);
	if (!written)
		fprintf(stderr, "vprof-agent: cannot write to %s: %s\n", VPROF_AGENT_MARK_PATH, strerror(errno));
	close(fd);
	return written;
}

int marker_command(const char *name, const char *kind)
{
	char line[MARKER_LINE_BYTES];
	struct marker marker;
	int n = snprintf(line, sizeof(line), "%" PRIu64 " %s %s\n", clock_ns(), kind, name);

	if (n < 0 || (size_t)n >= sizeof(line) || (line[n - 1] = '\0', !marker_parse(line, 0, &marker))) {
		fprintf(stderr, "vprof-agent: `mark %s %s`: a name has 1 to %u bytes, then comes begin or end\n", name,
		        kind, VPROF_AGENT_NAME_BYTES_MAX);
		return 2;
	}
	line[n - 1] = '\n';
	return line_write(line) ? 0 : 1;
}
