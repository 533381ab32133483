// SPDX-License-Identifier: BSD-2-Clause
#include "control/json_text.h"

#include <glib.h>
#include <stdint.h>
#include <string.h>

/* What may come next. */
enum wanted { WANTED_VALUE, WANTED_VALUE_OR_END, WANTED_NAME, WANTED_NAME_OR_END, WANTED_COMMA_OR_END };

struct scan {
	const char *at, *end;
	enum wanted wanted;
	size_t depth;     /* open arrays and objects */
	uint8_t *objects; /* a bit for each of them: it is an object */
	bool is_id;       /* the value that comes next is the outermost object's "id" */
	struct json_part id;
};

static bool next_is(const struct scan *scan, char c)
{
	return scan->at < scan->end && *scan->at == c;
}

static bool take(struct scan *scan, char c)
{
	bool found = next_is(scan, c);

	scan->at += found;
	return found;
}

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end && *scan->at != '\0' && strchr(" \t\r\n", *scan->at))
		scan->at++;
}

static bool take_word(struct scan *scan, const char *word)
{
	size_t n = strlen(word);
	bool found = (size_t)(scan->end - scan->at) >= n && memcmp(scan->at, word, n) == 0;

	scan->at += found ? n : 0;
	return found;
}

static bool take_digits(struct scan *scan)
{
	const char *from = scan->at;

	while (scan->at < scan->end && g_ascii_isdigit(*scan->at))
		scan->at++;
	return scan->at > from;
}

static bool take_number(struct scan *scan)
{
	take(scan, '-');
	if (!take(scan, '0') && !take_digits(scan))
		return false;
	if (take(scan, '.') && !take_digits(scan))
		return false;
	if (!take(scan, 'e') && !take(scan, 'E'))
		return true;
	if (!take(scan, '+'))
		take(scan, '-');
	return take_digits(scan);
}

static bool take_escape(struct scan *scan)
{
	if (scan->at == scan->end)
		return false;
	char c = *scan->at++;

	if (c != 'u')
		return c != '\0' && strchr("\"\\/bfnrt", c);
	for (unsigned i = 0; i < 4; i++)
		if (scan->at == scan->end || !g_ascii_isxdigit(*scan->at++))
			return false;
	return true;
}

static bool take_string(struct scan *scan)
{
	if (!take(scan, '"'))
		return false;
	while (!take(scan, '"')) {
		if (scan->at == scan->end || (unsigned char)*scan->at < 0x20)
			return false;
		if (*scan->at++ == '\\' && !take_escape(scan))
			return false;
	}
	return true;
}

static void open_with(struct scan *scan, bool object)
{
	uint8_t *byte = &scan->objects[scan->depth / 8], bit = (uint8_t)(1u << scan->depth % 8);

	*byte = object ? *byte | bit : *byte & (uint8_t)~bit;
	scan->depth++;
	scan->wanted = object ? WANTED_NAME_OR_END : WANTED_VALUE_OR_END;
}

static bool in_object(const struct scan *scan)
{
	return scan->objects[(scan->depth - 1) / 8] >> (scan->depth - 1) % 8 & 1;
}

static bool take_value(struct scan *scan)
{
	const bool is_id = scan->is_id;
	const char *from = scan->at;

	scan->is_id = false;
	if (is_id)
		scan->id = (struct json_part){0};
	if (next_is(scan, '{') || next_is(scan, '[')) {
		open_with(scan, *scan->at++ == '{');
		return true;
	}
	scan->wanted = WANTED_COMMA_OR_END;
	if (take_word(scan, "true") || take_word(scan, "false") || take_word(scan, "null"))
		return true;
	if (next_is(scan, '"') ? !take_string(scan) : !take_number(scan))
		return false;
	if (is_id)
		scan->id = (struct json_part){from, (size_t)(scan->at - from)};
	return true;
}

static bool take_name(struct scan *scan)
{
	static const char id[] = "\"id\"";
	const char *from = scan->at;

	if (!take_string(scan))
		return false;
	scan->is_id = scan->depth == 1 && (size_t)(scan->at - from) == strlen(id) && memcmp(from, id, strlen(id)) == 0;
	skip_space(scan);
	scan->wanted = WANTED_VALUE;
	return take(scan, ':');
}

static bool take_end(struct scan *scan)
{
	if (!take(scan, in_object(scan) ? '}' : ']'))
		return false;
	scan->depth--;
	scan->wanted = WANTED_COMMA_OR_END;
	return true;
}

static bool take_next(struct scan *scan)
{
	switch (scan->wanted) {
	case WANTED_VALUE_OR_END:
		return take_end(scan) || take_value(scan);
	case WANTED_VALUE:
		return take_value(scan);
	case WANTED_NAME_OR_END:
		return take_end(scan) || take_name(scan);
	case WANTED_NAME:
		return take_name(scan);
	case WANTED_COMMA_OR_END:
		if (!take(scan, ','))
			return take_end(scan);
		scan->wanted = in_object(scan) ? WANTED_NAME : WANTED_VALUE;
		return true;
	}
	return false;
}

bool json_text_check(const char *text, size_t bytes, struct json_part *id)
{
	g_autofree uint8_t *objects = g_malloc0(bytes / 8 + 1);
	struct scan scan = {.at = text, .end = text + bytes, .wanted = WANTED_VALUE, .objects = objects};

	if (!g_utf8_validate(text, (gssize)bytes, NULL))
		return false;
	skip_space(&scan);
	do {
		if (!take_next(&scan))
			return false;
		skip_space(&scan);
	} while (scan.wanted != WANTED_COMMA_OR_END || scan.depth > 0);
	*id = scan.id;
	return scan.at == scan.end;
}
