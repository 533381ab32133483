// SPDX-License-Identifier: BSD-2-Clause
#include "ui/text.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

char *text_printable(const char *text)
{
	char *copy = g_strdup(text ? text : "");

	for (char *at = copy; *at != '\0'; at++)
		if (g_ascii_iscntrl(*at))
			*at = '?';
	return copy;
}

json_t *text_json(const char *text)
{
	g_autofree char *valid = NULL;

	if (!text)
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
	if (value)
		json_object_set(object, name, (json_t *)value);
}

struct text_style text_style_for(FILE *stream)
{
	const char *terminal = g_getenv("TERM");
	const char *no_color = g_getenv("NO_COLOR");
	bool marks = isatty(fileno(stream)) && terminal && strcmp(terminal, "dumb") != 0 &&
	             (!no_color || no_color[0] == '\0');

	return marks ? (struct text_style){"\033[1m", "\033[0m"} : (struct text_style){"", ""};
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	return MIN(a, MIN(b, c));
}

/* Optimal string alignment distance (Damerau-Levenshtein without repeated edits). */
unsigned slips_between(const char *a, const char *b)
{
	unsigned cost[SLIPS_WORD_MAX + 1][SLIPS_WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > SLIPS_WORD_MAX || m > SLIPS_WORD_MAX)
		return SLIPS_WORD_MAX;
	for (size_t i = 0; i <= n; i++)
		cost[i][0] = (unsigned)i;
	for (size_t j = 0; j <= m; j++)
		cost[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			cost[i][j] = min3(cost[i - 1][j] + 1, cost[i][j - 1] + 1,
			                  cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost[i][j] = MIN(cost[i][j], cost[i - 2][j - 2] + 1);
		}
	return cost[n][m];
}
