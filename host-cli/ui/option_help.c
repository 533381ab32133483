// SPDX-License-Identifier: BSD-2-Clause
/* --help's list of options. */
#include <string.h>

#include "ui/option.h"
#include "ui/option_letter.h"
#include "ui/text.h"

#define COLUMN_MAX 28u /* of the explanations; longer options have a line of their own */

/* "  -e, --event=EVENT" */
static char *heading(const struct option_row *row)
{
	GString *text = g_string_new("  ");
	char letters[OPTION_LETTERS_MAX];

	option_letters(row->name, letters);
	for (const char *letter = letters; *letter != '\0'; letter++)
		g_string_append_printf(text, "-%c, ", *letter);
	g_string_append_printf(text, "--%s", row->name);
	if (row->argument)
		g_string_append_printf(text, "=%s", row->argument);
	return g_string_free(text, FALSE);
}

static size_t column_of(const GPtrArray *headings)
{
	size_t column = strlen("  --help");

	for (guint i = 0; i < headings->len; i++) {
		size_t n = strlen(g_ptr_array_index(headings, i));

		if (n + 2 <= COLUMN_MAX)
			column = MAX(column, n);
	}
	return column + 2;
}

static void print_row(GString *out, const char *left, const char *help, size_t column)
{
	g_string_append(out, left);
	if (strlen(left) + 2 <= column)
		g_string_append_printf(out, "%*s", (int)(column - strlen(left)), "");
	else
		g_string_append_printf(out, "\n%*s", (int)column, "");
	text_wrap(out, help, column);
	g_string_append_c(out, '\n');
}

char *option_rows_help(const struct option_row *rows)
{
	g_autoptr(GPtrArray) headings = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GArray) flat = option_rows_flatten(rows);
	GString *out = g_string_new("Options:\n");
	size_t column;

	for (guint i = 0; i < flat->len; i++)
		g_ptr_array_add(headings, heading(&g_array_index(flat, struct option_row, i)));
	column = column_of(headings);
	for (guint i = 0; i < flat->len; i++)
		print_row(out, g_ptr_array_index(headings, i), g_array_index(flat, struct option_row, i).help, column);
	print_row(out, "  -h, --help", "print this help", column);
	return g_string_free(out, FALSE);
}
