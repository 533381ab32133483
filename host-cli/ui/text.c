// SPDX-License-Identifier: BSD-2-Clause
#include "ui/text.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

char *text_printable(const char *text)
{
	char *copy = g_strdup(text != NULL ? text : "");

	for (char *at = copy; *at != '\0'; at++)
		if (g_ascii_iscntrl(*at))
			*at = '?';
	return copy;
}

json_t *text_json(const char *text)
{
	g_autofree char *valid = NULL;

	if (text == NULL)
		return json_null();
	valid = g_utf8_make_valid(text, -1);
	return json_string(valid);
}

void text_print_json(const json_t *document, unsigned digits, FILE *to)
{
	json_dumpf(document, to, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
	fputc('\n', to);
}

const char *member_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

uint64_t member_number(const json_t *object, const char *name, uint64_t otherwise)
{
	const json_t *value = json_object_get(object, name);

	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : otherwise;
}

void member_set(json_t *object, const char *name, const json_t *value)
{
	if (value != NULL)
		json_object_set(object, name, (json_t *)value);
}

struct text_style text_style_for(FILE *stream)
{
	const char *terminal = g_getenv("TERM");
	const char *no_color = g_getenv("NO_COLOR");
	bool marks = isatty(fileno(stream)) && terminal != NULL && strcmp(terminal, "dumb") != 0 &&
	             (no_color == NULL || no_color[0] == '\0');

	return marks ? (struct text_style){"\033[1m", "\033[0m"} : (struct text_style){"", ""};
}
