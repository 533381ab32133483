// SPDX-License-Identifier: BSD-2-Clause
#include "export/pair_table.h"

static guint pair_hash(gconstpointer key)
{
	const struct pair *pair = key;

	return (guint)pair->a * 2654435761u ^ (guint)pair->b;
}

static gboolean pair_equal(gconstpointer left, gconstpointer right)
{
	const struct pair *x = left, *y = right;

	return x->a == y->a && x->b == y->b;
}

void pair_table_init(struct pair_table *table)
{
	table->pairs = g_array_new(FALSE, FALSE, sizeof(struct pair));
	table->numbers = g_hash_table_new_full(pair_hash, pair_equal, g_free, NULL);
}

void pair_table_deinit(struct pair_table *table)
{
	g_array_unref(table->pairs);
	g_hash_table_unref(table->numbers);
}

int pair_table_number(struct pair_table *table, int a, int b)
{
	const struct pair pair = {a, b};
	gsize number = GPOINTER_TO_SIZE(g_hash_table_lookup(table->numbers, &pair));

	if (number != 0)
		return (int)number - 1;
	g_array_append_val(table->pairs, pair);
	g_hash_table_insert(table->numbers, g_memdup2(&pair, sizeof(pair)), GSIZE_TO_POINTER(table->pairs->len));
	return (int)table->pairs->len - 1;
}

const struct pair *pair_table_pair(const struct pair_table *table, guint number)
{
	return &g_array_index(table->pairs, struct pair, number);
}
