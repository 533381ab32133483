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

void option_rows_clear(const struct option_row *rows, void *values)
{
	g_autoptr(GArray) flat = option_rows_flatten(rows);

	for (guint i = 0; i < flat->len; i++) {
		const struct option_row *row = &g_array_index(flat, struct option_row, i);

		void *value = (char *)values + row->offset;

		if (row->type == OPTION_TEXT || row->type == OPTION_FILE)
			g_clear_pointer((char **)value, g_free);
		else if (row->type == OPTION_TEXTS || row->type == OPTION_FILES || row->type == OPTION_LIST)
			g_clear_pointer((char ***)value, g_strfreev);
	}
}
