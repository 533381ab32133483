// SPDX-License-Identifier: BSD-2-Clause
/* Cuts a byte stream into the lines of the control protocol (vprof/control.h); both ends of a connection use it. */
#ifndef VPROF_CLIENT_LINE_H
#define VPROF_CLIENT_LINE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

struct line_buffer {
	GByteArray *bytes;
	size_t taken;   /* bytes of lines that line_buffer_take has returned */
	size_t scanned; /* no newline in [taken, scanned) */
};

void line_buffer_init(struct line_buffer *buffer);
void line_buffer_deinit(struct line_buffer *buffer);

void line_buffer_append(struct line_buffer *buffer, const void *bytes, size_t n);

enum line_state {
	LINE_PARTIAL, /* no newline yet */
	LINE_READY,
	LINE_TOO_LONG, /* VPROF_CONTROL_LINE_BYTES_MAX and no newline: the stream cannot be read on */
};

/* What the buffer begins with. */
enum line_state line_buffer_state(struct line_buffer *buffer);

/*
 * The next line without its newline, NUL-terminated; NULL unless the state is LINE_READY. It lives until the next
 * append or deinit.
 */
const char *line_buffer_take(struct line_buffer *buffer, size_t *length);

#endif
