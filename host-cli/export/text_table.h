// SPDX-License-Identifier: BSD-2-Clause
/* Texts by number, each once: what formats have instead of repeating names. */
#ifndef VPROF_CLI_EXPORT_TEXT_TABLE_H
#define VPROF_CLI_EXPORT_TEXT_TABLE_H

#include <glib.h>

struct text_table {
	GPtrArray *texts;    /* by number; owned by `numbers` */
	GHashTable *numbers; /* text -> number + 1 */
};

void text_table_init(struct text_table *table);
void text_table_deinit(struct text_table *table);

/* The number of `text`, counted from 0; a new one is copied. */
guint text_table_number(struct text_table *table, const char *text);

#endif
