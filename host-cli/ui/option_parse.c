// SPDX-License-Identifier: BSD-2-Clause
/* getopt_long under the tables of options; its messages are ours. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "ui/option.h"
#include "ui/option_letter.h"
#include "ui/text.h"
#include "ui/units.h"

#define VALUE_FIRST 256 /* what getopt_long returns for the long option of row 0: above every letter */

struct parse {
	GArray *rows; /* struct option_row */
	struct option *options;
	GString *letters;
};

static void parse_init(struct parse *parse, const struct option_row *rows)
{
	guint n;

	parse->rows = option_rows_flatten(rows);
	n = parse->rows->len;
	parse->options = g_new0(struct option, n + 2);
	/* ":" reports a missing argument apart. */
	parse->letters = g_string_new(":h");
	for (guint i = 0; i < n; i++) {
		const struct option_row *row = &g_array_index(parse->rows, struct option_row, i);
		char letters[OPTION_LETTERS_MAX];

		parse->options[i] = (struct option){
			.name = row->name,
			.has_arg = row->type == OPTION_FLAG ? no_argument : required_argument,
			.val = VALUE_FIRST + (int)i,
		};
		option_letters(row->name, letters);
		for (const char *letter = letters; *letter != '\0'; letter++)
			g_string_append_printf(parse->letters, "%c%s", *letter, row->type == OPTION_FLAG ? "" : ":");
	}
	parse->options[n] = (struct option){.name = "help", .has_arg = no_argument, .val = 'h'};
}

static void parse_clear(struct parse *parse)
{
	g_array_unref(parse->rows);
	g_free(parse->options);
	g_string_free(parse->letters, TRUE);
}

static bool has_letter(const struct option_row *row, int letter)
{
	char letters[OPTION_LETTERS_MAX];

	option_letters(row->name, letters);
	return letter > 0 && letter < VALUE_FIRST && strchr(letters, letter);
}

/* NULL: no such option. */
static const struct option_row *row_of(const struct parse *parse, int value)
{
	if (value >= VALUE_FIRST && (guint)(value - VALUE_FIRST) < parse->rows->len)
		return &g_array_index(parse->rows, struct option_row, value - VALUE_FIRST);
	for (guint i = 0; i < parse->rows->len; i++)
		if (has_letter(&g_array_index(parse->rows, struct option_row, i), value))
			return &g_array_index(parse->rows, struct option_row, i);
	return NULL;
}

/* ---- values ---- */

static bool take_number(const struct option_row *row, const char *text, uint64_t *value, GError **error)
{
	g_autofree char *what = g_strconcat("--", row->name, NULL);
	const uint64_t max = row->max != 0 ? row->max : INT64_MAX;

	return row->type == OPTION_TIME ? units_parse_duration(what, text, max, value, error)
	                                : units_parse_number(what, text, row->min, max, value, error);
}

static bool take_double(const struct option_row *row, const char *text, double *value, GError **error)
{
	bool takes_percent = row->type == OPTION_PERCENT || row->type == OPTION_FRACTION;
	char *end;
	double number = g_ascii_strtod(text, &end);

	if (takes_percent && end != text && strcmp(end, "%") == 0) {
		number /= row->type == OPTION_FRACTION ? 100 : 1;
		end++;
	}
	if (end == text || *end != '\0' || !isfinite(number)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--%s takes a number%s, not \"%s\"",
		            row->name, takes_percent ? " or a percentage" : "", text);
		return false;
	}
	*value = number;
	return true;
}

static void append_text(char ***texts, char *text)
{
	guint n = *texts ? g_strv_length(*texts) : 0;

	*texts = g_renew(char *, *texts, n + 2);
	(*texts)[n] = text;
	(*texts)[n + 1] = NULL;
}

/* Commas between slashes belong to an event of a PMU, as in perf. */
static bool take_list(const struct option_row *row, const char *text, char ***texts, GError **error)
{
	const char *from = text;
	bool inside = false;

	for (const char *at = text;; at++) {
		inside ^= *at == '/';
		if (*at != '\0' && (*at != ',' || inside))
			continue;
		if (at == from) {
			g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			            "--%s takes a list with commas; \"%s\" has an empty name", row->name, text);
			return false;
		}
		if (row->max != 0 && *texts && g_strv_length(*texts) == row->max) {
			g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			            "--%s takes %" G_GUINT64_FORMAT " names at most; omit \"%s\"", row->name, row->max,
			            from);
			return false;
		}
		append_text(texts, g_strndup(from, (gsize)(at - from)));
		if (*at == '\0')
			return true;
		from = at + 1;
	}
}

static bool take(const struct option_row *row, void *values, const char *text, GError **error)
{
	void *value = (char *)values + row->offset;

	switch (row->type) {
	case OPTION_FLAG:
		*(gboolean *)value = TRUE;
		return true;
	case OPTION_TEXT:
	case OPTION_FILE:
		g_free(*(char **)value);
		*(char **)value = g_strdup(text);
		return true;
	case OPTION_TEXTS:
	case OPTION_FILES:
		append_text(value, g_strdup(text));
		return true;
	case OPTION_LIST:
		return take_list(row, text, value, error);
	case OPTION_NUMBER:
	case OPTION_TIME:
		return take_number(row, text, value, error);
	case OPTION_DOUBLE:
	case OPTION_PERCENT:
	case OPTION_FRACTION:
		return take_double(row, text, value, error);
	}
	g_assert_not_reached();
}

/* ---- errors ---- */

static void refuse_letter(const struct parse *parse, char letter, GError **error)
{
	g_autofree char *meaning = option_letter_meaning(letter);

	for (guint i = 0; i < parse->rows->len; i++) {
		const char *name = g_array_index(parse->rows, struct option_row, i).name;

		if (option_letter_lost(letter, name)) {
			g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION,
			            "-%c means --%s, which this command does not have; use --%s", letter, meaning,
			            name);
			return;
		}
	}
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION, "unknown option -%c", letter);
}

static char *names_with_prefix(const struct parse *parse, const char *prefix)
{
	GString *names = g_string_new(NULL);

	for (guint i = 0; i < parse->rows->len; i++) {
		const char *name = g_array_index(parse->rows, struct option_row, i).name;

		if (g_str_has_prefix(name, prefix))
			g_string_append_printf(names, "%s--%s", names->len > 0 ? ", " : "", name);
	}
	return g_string_free(names, FALSE);
}

static void refuse_name(const struct parse *parse, const char *word, GError **error)
{
	g_autofree char *name = g_strndup(word + 2, strcspn(word + 2, "="));
	g_autofree char *matches = names_with_prefix(parse, name);
	g_autoptr(GPtrArray) known = g_ptr_array_new();
	const char *near;

	if (*matches != '\0') {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION, "--%s is not clear: %s", name,
		            matches);
		return;
	}
	for (guint i = 0; i < parse->rows->len; i++)
		g_ptr_array_add(known, (char *)g_array_index(parse->rows, struct option_row, i).name);
	near = word_near(name, (const char *const *)known->pdata, known->len);
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION, "unknown option --%s%s%s%s", name,
	            near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

/* `word`: what getopt_long has refused. */
static void refuse(const struct parse *parse, int result, const char *word, GError **error)
{
	const struct option_row *row = row_of(parse, optopt);

	if (result == ':')
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--%s needs a value: --%s=%s", row->name,
		            row->name, row->argument);
	else if (row || optopt == 'h')
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--%s takes no value",
		            row ? row->name : "help");
	else if (optopt != 0)
		refuse_letter(parse, (char)optopt, error);
	else
		refuse_name(parse, word, error);
}

static bool parse_all(const struct parse *parse, void *values, int argc, char **argv, bool *wants_help, GError **error)
{
	int result;

	opterr = 0;
	optind = 0; /* glibc: begin anew */
	while ((result = getopt_long(argc, argv, parse->letters->str, parse->options, NULL)) != -1) {
		const struct option_row *row;

		if (result == 'h') {
			*wants_help = true;
			return true;
		}
		if (result == '?' || result == ':') {
			refuse(parse, result, argv[optind - 1], error);
			return false;
		}
		row = row_of(parse, result);
		if (values && !take(row, values, optarg, error))
			return false;
	}
	return true;
}

bool option_rows_parse(const struct option_row *rows, void *values, int argc, char **argv, int *first, bool *wants_help,
                       GError **error)
{
	struct parse parse;
	bool parsed;

	parse_init(&parse, rows);
	*wants_help = false;
	parsed = parse_all(&parse, values, argc, argv, wants_help, error);
	*first = optind;
	parse_clear(&parse);
	return parsed;
}
