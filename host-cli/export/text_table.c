// SPDX-License-Identifier: BSD-2-Clause
#include "export/text_table.h"

void text_table_init(struct text_table *table)
{
	table->texts = g_ptr_array_new();
	table->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

void text_table_deinit(struct text_table *table)
{
	g_ptr_array_unref(table->texts);
	g_hash_table_unref(table->numbers);
}

guint text_table_number(struct text_table *table, const char *text)
{
	guint number = GPOINTER_TO_UINT(g_hash_table_lookup(table->numbers, text));
	char *copy;

	if (number != 0)
		return number - 1;
	copy = g_strdup(text);
	g_ptr_array_add(table->texts, copy);
	g_hash_table_insert(table->numbers, copy, GUINT_TO_POINTER(table->texts->len));
	return table->texts->len - 1;
}
