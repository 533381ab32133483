// SPDX-License-Identifier: BSD-2-Clause
#include "run/exec_output.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <unistd.h>

#define FULL_BYTES 65536u

struct exec_output {
	int fd;
	GByteArray *waiting;
	size_t at; /* of what has not been written */
	bool broken;
	bool is_terminal;
	bool within_line;
};

struct exec_output *exec_output_new(int fd)
{
	struct exec_output *output = g_new0(struct exec_output, 1);

	output->fd = fd;
	output->is_terminal = isatty(fd);
	output->waiting = g_byte_array_new();
	return output;
}

void exec_output_free(struct exec_output *output)
{
	if (!output)
		return;
	g_byte_array_unref(output->waiting);
	g_free(output);
}

size_t exec_output_pending(const struct exec_output *output)
{
	return output->waiting->len - output->at;
}

bool exec_output_is_full(const struct exec_output *output)
{
	return exec_output_pending(output) >= FULL_BYTES;
}

bool exec_output_writes_here(const struct exec_output *output)
{
	return output->is_terminal && exec_output_pending(output) != 0;
}

bool exec_output_is_within_line(const struct exec_output *output)
{
	return output->is_terminal && output->within_line;
}

void exec_output_put(struct exec_output *output, const uint8_t *bytes, size_t n)
{
	if (output->broken)
		return;
	/* Written bytes are removed in large pieces, since moving the rest is expensive. */
	if (output->at >= FULL_BYTES) {
		g_byte_array_remove_range(output->waiting, 0, (guint)output->at);
		output->at = 0;
	}
	g_byte_array_append(output->waiting, bytes, (guint)n);
}

struct pollfd exec_output_poll(const struct exec_output *output)
{
	return (struct pollfd){.fd = exec_output_pending(output) != 0 ? output->fd : -1, .events = POLLOUT};
}

static void output_drop(struct exec_output *output)
{
	g_byte_array_set_size(output->waiting, 0);
	output->at = 0;
}

bool exec_output_write(struct exec_output *output)
{
	/*
	 * The descriptor may be shared with others and is not ours to make non-blocking. A pipe that poll(2) calls
	 * writable takes PIPE_BUF bytes at once (pipe(7)).
	 */
	size_t n = MIN(exec_output_pending(output), PIPE_BUF);
	ssize_t written = write(output->fd, output->waiting->data + output->at, n);

	if (written < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (written < 0) {
		output->broken = true;
		output_drop(output);
		return false;
	}
	output->at += (size_t)written;
	if (written > 0)
		output->within_line = output->waiting->data[output->at - 1] != '\n';
	if (exec_output_pending(output) == 0)
		output_drop(output);
	return true;
}
