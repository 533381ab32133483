// SPDX-License-Identifier: BSD-2-Clause
#include "ui/column_cell.h"

#include <string.h>

#include "ui/text.h"

#define GAP "  "

char *column_cell_text(const struct column *column, const struct profile_row *row)
{
	if (column->text)
		return text_printable(column->text(row));
	if (column->hexadecimal)
		return g_strdup_printf("%016" G_GINT64_MODIFIER "x", (uint64_t)column->number(row));
	return g_strdup_printf("%" G_GINT64_FORMAT, column->number(row));
}

int column_cells_width(const struct column *column, const struct profile_row *rows, size_t n_rows, int max)
{
	glong width = (glong)strlen(column->header);

	for (size_t i = 0; i < n_rows; i++) {
		g_autofree char *text = column_cell_text(column, &rows[i]);

		width = MAX(width, g_utf8_strlen(text, -1));
	}
	return (int)MIN(width, max);
}

void column_cell_append(GString *line, const struct column *column, const char *text, int width, bool last)
{
	int padding = MAX(width - (int)g_utf8_strlen(text, -1), 0);

	g_string_append_printf(line, GAP "%*s%s%*s", column->number ? padding : 0, "", text,
	                       column->number || last ? 0 : padding, "");
}

static json_t *cell_json(const struct column *column, const struct profile_row *row)
{
	if (column->text)
		return text_json(column->text(row));
	if (column->hexadecimal)
		return json_sprintf("0x%016" G_GINT64_MODIFIER "x", (uint64_t)column->number(row));
	return json_integer((json_int_t)column->number(row));
}

json_t *column_row_json(const struct column_list *list, const struct profile_row *row, double share)
{
	json_t *object = json_object();

	for (size_t i = 0; i < list->n; i++)
		json_object_set_new(object, list->column[i]->json_key, cell_json(list->column[i], row));
	json_object_set_new(object, "samples", json_integer((json_int_t)row->samples));
	json_object_set_new(object, "period", json_integer((json_int_t)row->period));
	json_object_set_new(object, "share", json_real(share));
	return object;
}
