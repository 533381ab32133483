// SPDX-License-Identifier: BSD-2-Clause
#include "engine/exit_rows.h"

#include <string.h>

#include "ui/text.h"

static int by_time(gconstpointer a, gconstpointer b)
{
	const struct exit_row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static struct exit_row *row_of(GArray *rows, const char *name)
{
	struct exit_row fresh = {.name = name};

	for (guint i = 0; i < rows->len; i++)
		if (strcmp(g_array_index(rows, struct exit_row, i).name, name) == 0)
			return &g_array_index(rows, struct exit_row, i);
	g_array_append_val(rows, fresh);
	return &g_array_index(rows, struct exit_row, rows->len - 1);
}

GArray *exit_rows_sum(const json_t *answers)
{
	GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct exit_row));
	const json_t *answer, *exit;
	size_t i, j;

	json_array_foreach(answers, i, answer)
	{
		json_array_foreach(json_object_get(answer, "exits"), j, exit)
		{
			const char *name = member_text(exit, "name");
			struct exit_row *row = row_of(rows, name != NULL ? name : "?");

			row->count += member_number(exit, "count", 0);
			row->ns += member_number(exit, "ns", 0);
		}
	}
	g_array_sort(rows, by_time);
	return rows;
}

static int by_count(gconstpointer a, gconstpointer b)
{
	const struct exit_row *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

GArray *exit_rows_between(const json_t *from, const json_t *to)
{
	g_autoptr(GArray) before = exit_rows_sum(from);
	GArray *rows = exit_rows_sum(to);

	for (guint i = rows->len; i-- > 0;) {
		struct exit_row *row = &g_array_index(rows, struct exit_row, i);
		const struct exit_row *old = row_of(before, row->name);

		/* Less than before: somebody has reset the counts. */
		if (row->count >= old->count && row->ns >= old->ns) {
			row->count -= old->count;
			row->ns -= old->ns;
		}
		if (row->count == 0)
			g_array_remove_index(rows, i);
	}
	g_array_sort(rows, by_count);
	return rows;
}

json_t *exit_rows_json(const GArray *rows)
{
	json_t *list = json_array();

	for (guint i = 0; i < rows->len; i++) {
		const struct exit_row *row = &g_array_index(rows, struct exit_row, i);

		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", row->name, "count",
		                                      (json_int_t)row->count, "ns", (json_int_t)row->ns));
	}
	return list;
}
