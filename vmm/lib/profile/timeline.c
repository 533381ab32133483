// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/timeline.h"

#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <vprof/exit.h>

#include "lib/profile/hash.h"
#include "lib/profile/slices.h"

struct timeline {
	GHashTable *cells;            /* of struct timeline_cell, which are their own keys, owned */
	struct timeline_cell *recent; /* that of the last sample; NULL: none since slices were joined */
	struct slices slices;
};

static guint cell_hash(gconstpointer key)
{
	const struct timeline_cell *cell = key;

	return (guint)hash_mix(cell->slice ^ hash_mix((uint64_t)cell->cpu << 2 | cell->mode) ^
	                       hash_mix(~cell->exit_reason));
}

static gboolean cell_equal(gconstpointer a, gconstpointer b)
{
	const struct timeline_cell *left = a, *right = b;

	return left->slice == right->slice && left->cpu == right->cpu && left->mode == right->mode &&
	       left->exit_reason == right->exit_reason;
}

static GHashTable *cells_new(void)
{
	return g_hash_table_new_full(cell_hash, cell_equal, g_free, NULL);
}

struct timeline *timeline_new(void)
{
	struct timeline *timeline = g_new0(struct timeline, 1);

	timeline->cells = cells_new();
	timeline->slices.shift = SLICES_SHIFT_AT_FIRST;
	return timeline;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	g_hash_table_unref(timeline->cells);
	g_free(timeline);
}

/* The cell of the table that it is a part of now. */
static struct timeline_cell *cells_put(GHashTable *cells, const struct timeline_cell *cell)
{
	struct timeline_cell *known = g_hash_table_lookup(cells, cell);

	if (known) {
		known->period += cell->period;
	} else {
		known = g_memdup2(cell, sizeof(*cell));
		g_hash_table_add(cells, known);
	}
	return known;
}

static void cells_join(struct timeline *timeline, unsigned bits)
{
	GHashTable *joined = cells_new();
	GHashTableIter iterator;
	gpointer key;

	g_hash_table_iter_init(&iterator, timeline->cells);
	while (g_hash_table_iter_next(&iterator, &key, NULL)) {
		struct timeline_cell cell = *(struct timeline_cell *)key;

		cell.slice >>= bits;
		cells_put(joined, &cell);
	}
	g_hash_table_unref(timeline->cells);
	timeline->cells = joined;
	timeline->recent = NULL;
	slices_join(&timeline->slices, bits);
}

void timeline_add(struct timeline *timeline, const struct record_sample *sample)
{
	struct timeline_cell cell = {
		.cpu = sample->cpu,
		.mode = profile_mode_of(sample->misc),
		.period = sample->period,
	};
	bool is_first = g_hash_table_size(timeline->cells) == 0;
	unsigned bits = slices_reach(&timeline->slices, sample->time_ns, is_first, TIMELINE_SLICES_MAX);

	if (cell.mode == PROFILE_HYPERVISOR)
		cell.exit_reason =
			vprof_exit_is_host(sample->ip) ? VPROF_EXIT_REASON_VMM : vprof_exit_reason(sample->ip);
	if (bits != 0)
		cells_join(timeline, bits);
	cell.slice = slices_at(&timeline->slices, sample->time_ns);
	if (timeline->recent && cell_equal(timeline->recent, &cell))
		timeline->recent->period += cell.period;
	else
		timeline->recent = cells_put(timeline->cells, &cell);
}

static int cells_compare(const void *a, const void *b)
{
	const struct timeline_cell *left = a, *right = b;

	if (left->slice != right->slice)
		return left->slice < right->slice ? -1 : 1;
	if (left->cpu != right->cpu)
		return left->cpu < right->cpu ? -1 : 1;
	if (left->mode != right->mode)
		return left->mode < right->mode ? -1 : 1;
	return (left->exit_reason > right->exit_reason) - (left->exit_reason < right->exit_reason);
}

struct timeline_cell *timeline_cells(const struct timeline *timeline, size_t *n)
{
	struct timeline_cell *cells = g_new(struct timeline_cell, g_hash_table_size(timeline->cells));
	GHashTableIter iterator;
	gpointer key;

	*n = 0;
	g_hash_table_iter_init(&iterator, timeline->cells);
	while (g_hash_table_iter_next(&iterator, &key, NULL))
		cells[(*n)++] = *(struct timeline_cell *)key;
	if (*n != 0)
		qsort(cells, *n, sizeof(*cells), cells_compare);
	return cells;
}

uint64_t timeline_slice_ns(const struct timeline *timeline)
{
	return slices_ns(&timeline->slices);
}
