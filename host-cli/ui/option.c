// SPDX-License-Identifier: BSD-2-Clause
#include "ui/option.h"

static void append(GArray *flat, const struct option_row *rows, size_t offset)
{
	for (; rows->name || rows->rows; rows++) {
		struct option_row row = *rows;

		row.offset += offset;
		if (row.rows)
			append(flat, row.rows, row.offset);
		else
			g_array_append_val(flat, row);
	}
}

GArray *option_rows_flatten(const struct option_row *rows)
{
	GArray *flat = g_array_new(FALSE, FALSE, sizeof(struct option_row));

	if (rows)
		append(flat, rows, 0);
	return flat;
}

void option_rows_add(const struct option_row *rows, void *values, GOptionContext *context)
{
	static const GOptionArg types[] = {
		[OPTION_FLAG] = G_OPTION_ARG_NONE,
		[OPTION_TEXT] = G_OPTION_ARG_STRING,
		[OPTION_FILE] = G_OPTION_ARG_FILENAME,
		[OPTION_TEXTS] = G_OPTION_ARG_STRING_ARRAY,
		[OPTION_FILES] = G_OPTION_ARG_FILENAME_ARRAY,
		[OPTION_INT] = G_OPTION_ARG_INT,
		[OPTION_DOUBLE] = G_OPTION_ARG_DOUBLE,
	};
	g_autoptr(GArray) flat = option_rows_flatten(rows);

	for (guint i = 0; i < flat->len; i++) {
		const struct option_row *row = &g_array_index(flat, struct option_row, i);
		const GOptionEntry entries[] = {
			{row->name, row->letter, 0, types[row->type], (char *)values + row->offset, row->help,
		         row->argument},
			{NULL},
		};

		g_option_context_add_main_entries(context, entries, NULL);
	}
}

void option_rows_clear(const struct option_row *rows, void *values)
{
	g_autoptr(GArray) flat = option_rows_flatten(rows);

	for (guint i = 0; i < flat->len; i++) {
		const struct option_row *row = &g_array_index(flat, struct option_row, i);

		void *value = (char *)values + row->offset;

		if (row->type == OPTION_TEXT || row->type == OPTION_FILE)
			g_clear_pointer((char **)value, g_free);
		else if (row->type == OPTION_TEXTS || row->type == OPTION_FILES)
			g_clear_pointer((char ***)value, g_strfreev);
	}
}
