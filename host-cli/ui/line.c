// SPDX-License-Identifier: BSD-2-Clause
#include "ui/line.h"

#include <glib.h>
#include <string.h>

#define DIGITS_MAX 20u     /* of 64 bits */
#define LINES_BYTES 65536u /* are many */

static const char PAIRS[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
			    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
			    "8081828384858687888990919293949596979899";

void line_deinit(struct line *line)
{
	g_free(line->text);
	*line = (struct line){0};
}

void line_grow(struct line *line, size_t n)
{
	line->size = 2 * (line->size + n) + LINES_BYTES;
	line->text = g_realloc(line->text, line->size);
}

static inline void line_add(struct line *line, const char *text, size_t n)
{
	memcpy(line_room(line, n), text, n);
	line->n += n;
}

void line_text(struct line *line, const char *text)
{
	line_add(line, text, strlen(text));
}

void line_number(struct line *line, uint64_t value, unsigned digits)
{
	char text[DIGITS_MAX];
	size_t at = sizeof(text);

	/* Two digits for each division. */
	while (value >= 10) {
		at -= 2;
		memcpy(text + at, &PAIRS[value % 100 * 2], 2);
		value /= 100;
	}
	if (value != 0 || at == sizeof(text))
		text[--at] = (char)('0' + value);
	while (sizeof(text) - at < digits)
		text[--at] = '0';
	line_add(line, text + at, sizeof(text) - at);
}

void line_hex(struct line *line, uint64_t value, unsigned digits)
{
	char text[DIGITS_MAX];
	size_t at = sizeof(text);

	do {
		text[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value != 0 || sizeof(text) - at < digits);
	line_add(line, text + at, sizeof(text) - at);
}

void line_signed(struct line *line, int64_t value)
{
	if (value < 0)
		line_char(line, '-');
	line_number(line, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void line_pad(struct line *line, size_t start, size_t width)
{
	while (line->n - start < width)
		line_char(line, ' ');
}

void line_flush(struct line *line, FILE *to)
{
	if (line->n != 0)
		fwrite(line->text, 1, line->n, to);
	line->n = 0;
}

void line_end(struct line *line, FILE *to)
{
	line_char(line, '\n');
	if (line->n >= LINES_BYTES)
		line_flush(line, to);
}
