// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/text.h"

#include <string.h>

#define INVALID ((gunichar)-2) /* the least that g_utf8_get_char_validated returns for what is no character */

bool text_is_control(gunichar c)
{
	switch (g_unichar_type(c)) {
	case G_UNICODE_CONTROL:
	case G_UNICODE_FORMAT:
	case G_UNICODE_LINE_SEPARATOR:
	case G_UNICODE_PARAGRAPH_SEPARATOR:
		return true;
	default:
		return false;
	}
}

/* How many bytes from `at` on are one character, or 1 for a byte that belongs to none; whether to show them. */
static size_t piece_at(const char *at, bool *shown)
{
	gunichar c;

	if ((unsigned char)*at < 0x80) {
		*shown = !g_ascii_iscntrl(*at);
		return 1;
	}
	c = g_utf8_get_char_validated(at, -1);
	*shown = c < INVALID && !text_is_control(c);
	return c < INVALID ? (size_t)(g_utf8_next_char(at) - at) : 1;
}

/* The first byte that has to be looked at. */
static char *plain_end(char *at, const char *end)
{
	while (at < end && *at >= ' ' && *at <= '~')
		at++;
	return at;
}

static size_t character_bytes(unsigned char lead)
{
	if (lead < 0xc0 || lead >= 0xf8)
		return 1;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

size_t text_whole_characters(const char *text, size_t n)
{
	for (size_t back = 1; back <= n && back < TEXT_CHARACTER_BYTES_MAX; back++) {
		const unsigned char byte = (unsigned char)text[n - back];

		if ((byte & 0xc0) != 0x80)
			return character_bytes(byte) > back ? n - back : n;
	}
	return n;
}

void text_make_printable(char *text)
{
	const char *end = text + PRINTABLE_BYTES_MAX;
	size_t n;
	bool shown;

	for (char *at = plain_end(text, end); *at != '\0'; at = plain_end(at + n, end)) {
		n = piece_at(at, &shown);
		if (n > (size_t)(end - at)) {
			*at = '\0';
			return;
		}
		if (!shown)
			memset(at, '?', n);
	}
}

char *text_printable(const char *text)
{
	/* With the whole of a character that goes beyond the limit. */
	char *copy = text ? g_strndup(text, strnlen(text, PRINTABLE_BYTES_MAX + 4)) : g_strdup("");

	text_make_printable(copy);
	return copy;
}

char *untrusted_printable(struct untrusted_text text)
{
	return text_printable(text.raw);
}

char *text_lines_printable(const char *text)
{
	GString *printable = g_string_new(NULL);

	for (size_t n; text && *text != '\0'; text += n) {
		n = strcspn(text, "\n");
		g_autofree char *raw = g_strndup(text, n), *line = NULL;

		n += text[n] == '\n';
		if (g_str_has_suffix(raw, "\r"))
			raw[strlen(raw) - 1] = '\0';
		line = text_printable(raw);
		g_string_append_printf(printable, "%s\n", line);
	}
	return g_string_free(printable, FALSE);
}
