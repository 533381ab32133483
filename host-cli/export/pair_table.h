// SPDX-License-Identifier: BSD-2-Clause
/* Pairs of numbers by number, each once: functions by name and module, stacks by frame and caller. */
#ifndef VPROF_CLI_EXPORT_PAIR_TABLE_H
#define VPROF_CLI_EXPORT_PAIR_TABLE_H

#include <glib.h>

struct pair {
	int a, b;
};

struct pair_table {
	GArray *pairs;       /* of struct pair, by number */
	GHashTable *numbers; /* struct pair -> number + 1 */
};

void pair_table_init(struct pair_table *table);
void pair_table_deinit(struct pair_table *table);

/* The number of the pair, counted from 0. */
int pair_table_number(struct pair_table *table, int a, int b);
/* That with a number. */
const struct pair *pair_table_pair(const struct pair_table *table, guint number);

#endif
