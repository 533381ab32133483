// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lines of text under construction, for commands that print millions of them: several times faster than printf(3).
 * They are written many at a time.
 */
#ifndef VPROF_CLI_UI_LINE_H
#define VPROF_CLI_UI_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct line {
	char *text; /* not terminated */
	size_t n, size;
};

void line_deinit(struct line *line);

/* Room for n more characters. */
void line_grow(struct line *line, size_t n);

static inline char *line_room(struct line *line, size_t n)
{
	if (line->size - line->n < n)
		line_grow(line, n);
	return line->text + line->n;
}

static inline void line_char(struct line *line, char c)
{
	*line_room(line, 1) = c;
	line->n++;
}

void line_text(struct line *line, const char *text);
/* As "%0*llu", "%0*llx" and "%lld" print them; `digits`: at least so many, up to 20. */
void line_number(struct line *line, uint64_t value, unsigned digits);
void line_hex(struct line *line, uint64_t value, unsigned digits);
void line_signed(struct line *line, int64_t value);
/* Blanks up to that many characters behind `start`, which is a former value of n. */
void line_pad(struct line *line, size_t start, size_t width);

/* At the end of a line: writes all lines once they are many. */
void line_end(struct line *line, FILE *to);
/* Writes all that there is. */
void line_flush(struct line *line, FILE *to);

#endif
