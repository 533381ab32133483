// SPDX-License-Identifier: BSD-2-Clause
#include "report/contention_locks.h"

#include <string.h>
#include <vprof/recording.h>

#include "ui/text.h"

#define NS_PER_S 1e9
#define NAME_WIDTH_MAX 48

struct lock_row {
	const char *kind;
	char *lock;                 /* "jobs_lock", "0xffff888003a41d60", "0x55d0c8 of pid 31" */
	const char *waiter, *owner; /* names of tasks; owner NULL: not known */
	uint64_t waits, period, max;
};

struct contention_locks {
	const struct input *input;
	GHashTable *rows; /* "kind\nlock\nwaiter\nowner" -> struct lock_row * */
};

static void lock_row_free(void *data)
{
	struct lock_row *row = data;

	g_free(row->lock);
	g_free(row);
}

struct contention_locks *contention_locks_new(const struct input *input)
{
	struct contention_locks *locks = g_new0(struct contention_locks, 1);

	locks->input = input;
	locks->rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, lock_row_free);
	return locks;
}

void contention_locks_free(struct contention_locks *locks)
{
	g_hash_table_unref(locks->rows);
	g_free(locks);
}

/* One in the kernel's own data has a name; others are in what it has allocated, or in a process. */
static char *lock_name(const struct input *input, const struct record_sample *sample, const struct vprof_wait *wait)
{
	const struct symbol *symbol = input->symtab ? symtab_find_data(input->symtab, wait->lock) : NULL;
	const struct recording_symbol *recorded = recording_symbol_find(input->recording, wait->lock);
	const char *name = symbol ? symbol->name : recorded ? recorded->name : NULL;
	const uint64_t offset = wait->lock - (symbol ? symbol->address : recorded ? recorded->address : 0);

	if (wait->lock_kind == VPROF_LOCK_FUTEX)
		return g_strdup_printf("0x%" G_GINT64_MODIFIER "x of pid %d", wait->lock, (int32_t)sample->pid);
	if (!name)
		return g_strdup_printf("0x%" G_GINT64_MODIFIER "x", wait->lock);
	if (offset == 0)
		return text_printable(name);
	g_autofree char *printable = text_printable(name);

	return g_strdup_printf("%s+0x%" G_GINT64_MODIFIER "x", printable, offset);
}

static const char *kind_name(uint32_t kind)
{
#define X(id, name) [id] = name,
	static const char *const names[VPROF_LOCK_COUNT] = {VPROF_LOCKS(X)};
#undef X

	return names[kind];
}

void contention_locks_take(struct contention_locks *locks, const struct record_sample *sample)
{
	const struct vprof_wait wait = record_sample_wait(sample);
	struct names *names = locks->input->names;

	if (wait.lock_kind == VPROF_LOCK_UNKNOWN)
		return;
	const char *waiter = names_comm(names, sample->tid, sample->time_ns),
		   *owner = wait.owner_tid != 0 ? names_comm(names, wait.owner_tid, sample->time_ns) : NULL;
	g_autofree char *lock = lock_name(locks->input, sample, &wait);
	g_autofree char *key = g_strdup_printf("%u\n%s\n%s\n%s", wait.lock_kind, lock, waiter, owner ? owner : "");
	struct lock_row *row = g_hash_table_lookup(locks->rows, key);

	if (!row) {
		row = g_new0(struct lock_row, 1);
		*row = (struct lock_row){kind_name(wait.lock_kind), g_steal_pointer(&lock), waiter, owner, 0, 0, 0};
		g_hash_table_insert(locks->rows, g_steal_pointer(&key), row);
	}
	row->waits++;
	row->period += sample->period;
	row->max = MAX(row->max, sample->period);
}

/* ---- rows ---- */

static int rows_compare(gconstpointer left, gconstpointer right)
{
	const struct lock_row *x = *(struct lock_row *const *)left, *y = *(struct lock_row *const *)right;

	if (x->period != y->period)
		return x->period > y->period ? -1 : 1;
	int order = strcmp(x->lock, y->lock);

	if (order == 0)
		order = strcmp(x->waiter, y->waiter);
	return order ? order : g_strcmp0(x->owner, y->owner);
}

static double share(uint64_t period, uint64_t whole)
{
	return whole ? (double)period / (double)whole : 0;
}

GPtrArray *contention_rows(GHashTable *table, GCompareFunc compare, size_t period, uint64_t whole,
                           const struct report_options *options, guint *n_left_out)
{
	GPtrArray *rows = g_ptr_array_new();
	GHashTableIter iterator;
	gpointer row;
	guint kept = 0;

	g_hash_table_iter_init(&iterator, table);
	while (g_hash_table_iter_next(&iterator, NULL, &row))
		g_ptr_array_add(rows, row);
	g_ptr_array_sort(rows, compare);
	while (kept < rows->len && (options->limit == 0 || kept < options->limit) &&
	       100 * share(G_STRUCT_MEMBER(uint64_t, g_ptr_array_index(rows, kept), period), whole) >=
	               options->percent_limit)
		kept++;
	*n_left_out = rows->len - kept;
	g_ptr_array_set_size(rows, (gint)kept);
	return rows;
}

static GPtrArray *rows_of(const struct contention_locks *locks, const struct report_options *options, uint64_t period,
                          guint *n_left_out)
{
	return contention_rows(locks->rows, rows_compare, offsetof(struct lock_row, period), period, options,
	                       n_left_out);
}

json_t *contention_locks_json(const struct contention_locks *locks, const struct report_options *options,
                              uint64_t period, guint *n_left_out)
{
	g_autoptr(GPtrArray) rows = rows_of(locks, options, period, n_left_out);
	json_t *list = json_array();

	for (guint i = 0; i < rows->len; i++) {
		const struct lock_row *row = g_ptr_array_index(rows, i);

		json_array_append_new(list,
		                      json_pack("{s:s, s:o, s:o, s:o, s:f, s:I, s:I, s:I}", "kind", row->kind, "lock",
		                                text_json(row->lock), "waiter", text_json(row->waiter), "owner",
		                                row->owner ? text_json(row->owner) : json_null(), "share",
		                                share(row->period, period), "waits", (json_int_t)row->waits, "period",
		                                (json_int_t)row->period, "max", (json_int_t)row->max));
	}
	return list;
}

void contention_locks_print(const struct contention_locks *locks, const struct report_options *options, uint64_t period,
                            FILE *to)
{
	guint n_left_out;
	g_autoptr(GPtrArray) rows = rows_of(locks, options, period, &n_left_out);
	glong width = g_utf8_strlen("Lock", -1);

	if (rows->len == 0)
		return;
	for (guint i = 0; i < rows->len; i++)
		width = MAX(width, g_utf8_strlen(((struct lock_row *)g_ptr_array_index(rows, i))->lock, -1));
	width = MIN(width, NAME_WIDTH_MAX);
	fprintf(to, "#\n#%7s %10s %10s %10s  %-9s  %-*s  %-15s  %s\n", "Share", "Seconds", "Waits", "Longest", "Kind",
	        (int)width, "Lock", "Waiter", "Held by");
	for (guint i = 0; i < rows->len; i++) {
		const struct lock_row *row = g_ptr_array_index(rows, i);

		fprintf(to, "%7.2f%% %9.6f %10" G_GUINT64_FORMAT " %10.6f  %-9s  %-*s  %-15s  %s\n",
		        100 * share(row->period, period), (double)row->period / NS_PER_S, row->waits,
		        (double)row->max / NS_PER_S, row->kind, (int)width, row->lock, row->waiter,
		        row->owner ? row->owner : "[unknown]");
	}
	if (n_left_out > 0)
		fprintf(to, "# %u more\n", n_left_out);
}
