// SPDX-License-Identifier: BSD-2-Clause
#include "tasks/task_user.h"

#include "record/recorder_tables.h"

#define TABLES_WAIT_US INT64_C(3000000)
#define TABLES_LOOK_US 5000 /* between two looks for tables that are made */

struct task_user {
	struct user_symbols *symbols;
};

/* Files are wanted once: recorder_tables remembers them. */
static void files_want(const struct task_table *table, struct recorder_tables *tables)
{
	for (guint i = 0; i < table->rows->len; i++) {
		const struct task_row *row = g_ptr_array_index(table->rows, i);

		for (guint k = 0; k < row->mappings->len; k++) {
			const struct task_mapping *mapping = &g_array_index(row->mappings, struct task_mapping, k);
			const struct record_mmap mmap = {.mode = PERF_RECORD_MISC_USER,
			                                 .start = mapping->start,
			                                 .bytes = mapping->end - mapping->start,
			                                 .page_offset = mapping->file_offset,
			                                 .build_id = mapping->build_id,
			                                 .build_id_bytes = mapping->build_id_bytes,
			                                 .file_name = {mapping->file}};

			if (mapping->build_id_bytes != 0)
				recorder_tables_want(tables, &mmap);
		}
	}
}

static void tables_give(struct recorder_tables *tables, struct client *client)
{
	const gint64 until_us = g_get_monotonic_time() + TABLES_WAIT_US;

	do {
		recorder_tables_send(tables, client);
		g_usleep(TABLES_LOOK_US);
	} while (recorder_tables_busy(tables) && g_get_monotonic_time() < until_us);
	recorder_tables_send(tables, client);
}

struct task_user *task_user_new(const struct task_table *table, const struct guest_engine *engine,
                                const struct user_symbol_sources *sources)
{
	struct task_user *user = g_new0(struct task_user, 1);
	struct recorder_tables *tables = recorder_tables_new(sources, NULL);

	user->symbols = user_symbols_new(sources);
	files_want(table, tables);
	if (engine->own)
		tables_give(tables, engine->client);
	recorder_tables_settle(tables, engine->client);
	recorder_tables_give(tables, user->symbols);
	recorder_tables_free(tables);
	return user;
}

void task_user_free(struct task_user *user)
{
	if (!user)
		return;
	user_symbols_free(user->symbols);
	g_free(user);
}

const char *task_user_symbol(struct task_user *user, const struct task_mapping *mapping, uint64_t address)
{
	struct user_symbol symbol;

	return user_symbols_find(user->symbols, mapping->file, mapping->build_id_bytes != 0 ? mapping->build_id : NULL,
	                         mapping->build_id_bytes, address - mapping->start + mapping->file_offset, &symbol)
	               ? symbol.name
	               : NULL;
}
