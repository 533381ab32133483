// SPDX-License-Identifier: BSD-2-Clause
#include "ui/text.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

#define SLIPS_NEAR 2u

char *text_markup(const char *text)
{
	g_autofree char *printable = text_printable(text);

	return g_markup_escape_text(printable, -1);
}

json_t *text_json(const char *text)
{
	g_autofree char *valid = NULL;

	if (!text)
		return json_null();
	valid = g_utf8_make_valid(text, -1);
	return json_string(valid);
}

/* jansson passes whole characters, of which it has escaped those below U+0020. */
static int json_piece_write(const char *piece, size_t n, void *data)
{
	const char *written = piece, *end = piece + n;
	FILE *to = data;

	for (const char *at = piece; at < end; at = g_utf8_next_char(at)) {
		const gunichar c = g_utf8_get_char(at);

		if (c < 0x7f || !text_is_control(c))
			continue;
		fwrite(written, 1, (size_t)(at - written), to);
		if (c > UINT16_MAX) /* a surrogate pair */
			fprintf(to, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
		else
			fprintf(to, "\\u%04x", c);
		written = g_utf8_next_char(at);
	}
	fwrite(written, 1, (size_t)(end - written), to);
	return 0;
}

void json_write(const json_t *value, size_t flags, FILE *to)
{
	json_dump_callback(value, json_piece_write, to, flags);
}

void text_print_json(const json_t *document, unsigned digits, FILE *to)
{
	json_write(document, JSON_INDENT(2) | JSON_REAL_PRECISION(digits), to);
	fputc('\n', to);
}

static bool is_printable(const char *text)
{
	g_autofree char *printable = text_printable(text);

	return strcmp(text, printable) == 0;
}

static void make_printable(json_t *value);

static void object_make_printable(json_t *object)
{
	const char *name;
	json_t *member;
	void *next;

	json_object_foreach_safe(object, next, name, member)
	{
		make_printable(member);
		if (!is_printable(name)) {
			g_autofree char *printable = text_printable(name);

			json_object_set(object, printable, member);
			json_object_del(object, name);
		}
	}
}

static void make_printable(json_t *value)
{
	json_t *element;
	size_t i;

	if (json_is_object(value))
		object_make_printable(value);
	json_array_foreach(value, i, element)
		make_printable(element);
	if (json_is_string(value) && !is_printable(json_string_value(value))) {
		g_autofree char *printable = text_printable(json_string_value(value));

		json_string_set(value, printable);
	}
}

json_t *json_printable(json_t *value)
{
	make_printable(value);
	return value;
}

json_t *json_read(const char *text, size_t bytes, size_t flags, json_error_t *why)
{
	size_t values = 1;

	/* Those within texts count, too. */
	for (size_t i = 0; i < bytes; i++)
		values += strchr("[{,:", text[i]) && text[i] != '\0';
	if (values <= JSON_VALUES_MAX)
		return json_printable(json_loadb(text, bytes, flags, why));
	snprintf(why->text, sizeof(why->text), "it has more than %u values", JSON_VALUES_MAX);
	return NULL;
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

static bool is_paged;

void text_set_paged(void)
{
	is_paged = true;
}

bool text_is_for_terminal(FILE *stream)
{
	return isatty(fileno(stream)) || (stream == stdout && is_paged);
}

struct text_style text_style_for(FILE *stream)
{
	const char *terminal = g_getenv("TERM");
	const char *no_color = g_getenv("NO_COLOR");
	bool marks = text_is_for_terminal(stream) && terminal && strcmp(terminal, "dumb") != 0 &&
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
	uint8_t cost[SLIPS_WORD_MAX + 1][SLIPS_WORD_MAX + 1]; /* none is higher than the longer word is long */
	size_t n = strlen(a), m = strlen(b);

	if (n > SLIPS_WORD_MAX || m > SLIPS_WORD_MAX)
		return SLIPS_WORD_MAX;
	for (size_t i = 0; i <= n; i++)
		cost[i][0] = (uint8_t)i;
	for (size_t j = 0; j <= m; j++)
		cost[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			unsigned least = min3(cost[i - 1][j] + 1u, cost[i][j - 1] + 1u,
			                      cost[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1u : 0u));

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				least = MIN(least, cost[i - 2][j - 2] + 1u);
			cost[i][j] = (uint8_t)least;
		}
	return cost[n][m];
}

const char *word_near(const char *word, const char *const *words, size_t n)
{
	unsigned best_slips = SLIPS_NEAR + 1;
	const char *best = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned slips = slips_between(word, words[i]);

		/* With half as many slips as letters, any short word would match. */
		if (slips < best_slips && 2 * slips < strlen(word)) {
			best = words[i];
			best_slips = slips;
		}
	}
	for (size_t i = 0; i < n && !best && *word != '\0'; i++)
		if (g_str_has_prefix(words[i], word))
			best = words[i];
	return best;
}

void text_wrap(GString *out, const char *text, size_t column)
{
	size_t at = column;

	while (*text != '\0') {
		size_t n = strcspn(text, " \n");

		if (at > column && at + 1 + n > TEXT_COLUMNS) {
			g_string_append_printf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			g_string_append_c(out, ' ');
			at++;
		}
		g_string_append_len(out, text, (gssize)n);
		at += n;
		text += n;
		text += strspn(text, " \n");
	}
}
