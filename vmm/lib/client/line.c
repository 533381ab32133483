// SPDX-License-Identifier: BSD-2-Clause
#include "lib/client/line.h"

#include <string.h>
#include <vprof/control.h>

void line_buffer_init(struct line_buffer *buffer)
{
	*buffer = (struct line_buffer){.bytes = g_byte_array_new()};
}

void line_buffer_deinit(struct line_buffer *buffer)
{
	g_byte_array_unref(buffer->bytes);
	*buffer = (struct line_buffer){0};
}

void line_buffer_append(struct line_buffer *buffer, const void *bytes, size_t n)
{
	if (buffer->taken > 0) {
		g_byte_array_remove_range(buffer->bytes, 0, (guint)buffer->taken);
		buffer->scanned -= buffer->taken;
		buffer->taken = 0;
	}
	g_byte_array_append(buffer->bytes, bytes, (guint)n);
}

/* Moves `scanned` to the first newline, or to the end. */
static bool find_newline(struct line_buffer *buffer)
{
	const GByteArray *bytes = buffer->bytes;

	if (buffer->scanned == bytes->len)
		return false;

	const guint8 *from = bytes->data + buffer->scanned;
	const guint8 *newline = memchr(from, '\n', bytes->len - buffer->scanned);
	buffer->scanned = newline ? (size_t)(newline - bytes->data) : bytes->len;
	return newline;
}

enum line_state line_buffer_state(struct line_buffer *buffer)
{
	bool complete = find_newline(buffer);
	size_t length = buffer->scanned - buffer->taken;

	if (length >= VPROF_CONTROL_LINE_BYTES_MAX)
		return LINE_TOO_LONG;
	return complete ? LINE_READY : LINE_PARTIAL;
}

const char *line_buffer_take(struct line_buffer *buffer, size_t *length)
{
	if (line_buffer_state(buffer) != LINE_READY)
		return NULL;

	guint8 *line = buffer->bytes->data + buffer->taken;
	*length = buffer->scanned - buffer->taken;
	line[*length] = '\0';
	buffer->taken = ++buffer->scanned;
	return (const char *)line;
}
