// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/histogram.h"

#include <glib.h>
#include <stdlib.h>
#include <vprof/exit.h>

#include "lib/profile/chain.h"
#include "lib/profile/hash.h"

#define CELLS_AT_FIRST 4096u /* a power of two */

/* All samples at one address in one mode, of one event, on one vCPU and of one task (if told apart). Free while samples
 * is 0. */
struct cell {
	uint64_t ip;
	uint64_t samples;
	uint64_t period;
	const struct mapping *mapping; /* of user space, when mappings are known; NULL */
	const char *comm;              /* "" when tasks are not told apart; the same pointer for the same name */
	const char *cgroup;            /* of the same kind, by path */
	const char *waker;             /* of the same kind */
	uint32_t pid, tid;
	uint32_t cpu;
	uint16_t event;
	uint8_t mode;  /* enum profile_mode */
	uint8_t state; /* enum vprof_task_state */
};

struct histogram {
	struct cell *cells; /* open addressing, linear probing, at most half full */
	size_t n_cells;     /* a power of two */
	size_t n_used;
	struct names *names; /* NULL: files, tasks and cgroups are not known */
	unsigned keys;       /* of enum column_key */
	uint64_t samples;
	uint64_t period;
};

struct histogram *histogram_new(struct names *names, unsigned keys)
{
	struct histogram *histogram = g_new0(struct histogram, 1);

	histogram->names = names;
	histogram->keys = keys;
	histogram->n_cells = CELLS_AT_FIRST;
	histogram->cells = g_new0(struct cell, histogram->n_cells);
	return histogram;
}

void histogram_free(struct histogram *histogram)
{
	if (!histogram)
		return;
	g_free(histogram->cells);
	g_free(histogram);
}

static uint64_t cell_hash(const struct cell *key)
{
	uint64_t task = (uint64_t)key->pid << 32 ^ key->tid ^ (uintptr_t)key->comm ^ (uintptr_t)key->mapping << 8;

	return hash_mix(
		key->ip ^
		hash_mix((uint64_t)key->cpu << 32 | (uint64_t)key->event << 8 | (uint64_t)key->state << 4 | key->mode) ^
		hash_mix(task ^ (uintptr_t)key->cgroup << 16 ^ (uintptr_t)key->waker << 24));
}

static bool cell_same(const struct cell *a, const struct cell *b)
{
	return a->ip == b->ip && a->cpu == b->cpu && a->event == b->event && a->mode == b->mode &&
	       a->state == b->state && a->pid == b->pid && a->tid == b->tid && a->comm == b->comm &&
	       a->cgroup == b->cgroup && a->waker == b->waker && a->mapping == b->mapping;
}

/* The cell of `key`, or the free one where it belongs. */
static struct cell *cell_find(struct cell *cells, size_t n_cells, const struct cell *key)
{
	size_t i = cell_hash(key) & (n_cells - 1);

	while (cells[i].samples != 0 && !cell_same(&cells[i], key))
		i = (i + 1) & (n_cells - 1);
	return &cells[i];
}

static void histogram_grow(struct histogram *histogram)
{
	size_t n_cells = histogram->n_cells * 2;
	struct cell *cells = g_new0(struct cell, n_cells);

	for (size_t i = 0; i < histogram->n_cells; i++)
		if (histogram->cells[i].samples != 0)
			*cell_find(cells, n_cells, &histogram->cells[i]) = histogram->cells[i];
	g_free(histogram->cells);
	histogram->cells = cells;
	histogram->n_cells = n_cells;
}

/* The cell of a sample, empty. */
static struct cell cell_key(const struct histogram *histogram, const struct record_sample *sample, unsigned event)
{
	struct names *names = histogram->names;
	struct cell key = {
		.ip = sample->ip,
		.comm = "",
		.cgroup = "",
		.waker = "",
		.event = (uint16_t)event,
		.mode = (uint8_t)profile_mode_of(sample->misc),
	};

	if (histogram->keys & COLUMN_KEY_CPU)
		key.cpu = sample->cpu;
	if (histogram->keys & COLUMN_KEY_STATE)
		key.state = (uint8_t)profile_state_of(sample->misc);
	if (!names)
		return key;
	key.mapping = names_mapping(names, (enum profile_mode)key.mode, sample->pid, sample->ip, sample->time_ns);
	if (histogram->keys & COLUMN_KEY_TASK) {
		key.pid = sample->pid;
		key.tid = sample->tid;
		key.comm = names_comm(names, sample->tid, sample->time_ns);
	}
	if (histogram->keys & COLUMN_KEY_CGROUP)
		key.cgroup = names_cgroup(names, sample);
	if (histogram->keys & COLUMN_KEY_WAKER)
		key.waker = names_waker(names, sample);
	return key;
}

void histogram_add(struct histogram *histogram, const struct record_sample *sample, unsigned event)
{
	const struct cell key = cell_key(histogram, sample, event);
	struct cell *cell = cell_find(histogram->cells, histogram->n_cells, &key);

	if (cell->samples == 0) {
		if (histogram->n_used >= histogram->n_cells / 2) {
			histogram_grow(histogram);
			cell = cell_find(histogram->cells, histogram->n_cells, &key);
		}
		*cell = key;
		histogram->n_used++;
	}
	cell->samples++;
	cell->period += sample->period;
	histogram->samples++;
	histogram->period += sample->period;
}

void histogram_add_frames(struct histogram *histogram, const struct record_sample *sample)
{
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	uint32_t n = chain_frames(sample, frames);

	for (uint32_t i = 0; i < n; i++)
		histogram_add(histogram,
		              &(struct record_sample){.ip = frames[i].ip,
		                                      .misc = frames[i].misc,
		                                      .pid = sample->pid,
		                                      .time_ns = sample->time_ns},
		              0);
}

uint64_t histogram_samples(const struct histogram *histogram)
{
	return histogram->samples;
}

uint64_t histogram_period(const struct histogram *histogram)
{
	return histogram->period;
}

static int cells_compare(const void *a, const void *b)
{
	const struct cell *left = a, *right = b;

	if (left->mode != right->mode)
		return left->mode < right->mode ? -1 : 1;
	if (left->mapping != right->mapping)
		return (uintptr_t)left->mapping < (uintptr_t)right->mapping ? -1 : 1;
	return (left->ip > right->ip) - (left->ip < right->ip);
}

/* The used cells, by mode, mapping and address. Array of n_used by g_free. */
static struct cell *histogram_sorted(const struct histogram *histogram)
{
	struct cell *sorted = g_new0(struct cell, histogram->n_used);
	size_t n = 0;

	for (size_t i = 0; i < histogram->n_cells; i++)
		if (histogram->cells[i].samples != 0)
			sorted[n++] = histogram->cells[i];
	if (n != 0)
		qsort(sorted, n, sizeof(*sorted), cells_compare);
	return sorted;
}

/* One row a cell; neighbours with the same address share one look-up. */
static struct profile_row *rows_resolve(const struct cell *cells, size_t n, struct resolver *resolver,
                                        const char *const *event_names)
{
	struct profile_row *rows = g_new(struct profile_row, n);
	struct place place;

	for (size_t i = 0; i < n; i++) {
		const struct cell *cell = &cells[i];

		if (i == 0 || cells_compare(cell, cell - 1) != 0)
			resolver_find(resolver, cell->mode, cell->ip, cell->mapping, &place);
		rows[i] = (struct profile_row){
			.symbol = place.symbol,
			.module = place.module,
			.event = event_names[cell->event],
			.comm = cell->comm,
			.cgroup = cell->cgroup,
			.waker = cell->waker,
			.domain = "",
			.ip = cell->ip,
			.pid = cell->pid,
			.tid = cell->tid,
			.cpu = cell->cpu,
			.mode = cell->mode,
			.state = cell->state,
			.samples = cell->samples,
			.period = cell->period,
		};
	}
	return rows;
}

static int rows_compare_key(const void *a, const void *b, void *list)
{
	return column_list_compare(list, a, b);
}

static int rows_compare_size(const void *a, const void *b, void *list)
{
	const struct profile_row *left = a, *right = b;

	if (left->period != right->period)
		return left->period > right->period ? -1 : 1;
	if (left->samples != right->samples)
		return left->samples > right->samples ? -1 : 1;
	return column_list_compare(list, left, right);
}

/* Sums up neighbours that belong together; returns how many rows are left. */
static size_t rows_merge(struct profile_row *rows, size_t n, const struct column_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept != 0 && column_list_compare(list, &rows[kept - 1], &rows[i]) == 0) {
			rows[kept - 1].samples += rows[i].samples;
			rows[kept - 1].period += rows[i].period;
		} else {
			rows[kept++] = rows[i];
		}
	}
	return kept;
}

size_t profile_rows_group(struct profile_row *rows, size_t n, const struct column_list *list)
{
	g_qsort_with_data(rows, (int)n, sizeof(*rows), rows_compare_key, (void *)list);
	n = rows_merge(rows, n, list);
	g_qsort_with_data(rows, (int)n, sizeof(*rows), rows_compare_size, (void *)list);
	return n;
}

struct profile_row *histogram_rows(const struct histogram *histogram, const struct column_list *list,
                                   struct resolver *resolver, const char *const *event_names, size_t *n)
{
	struct cell *cells = histogram_sorted(histogram);
	struct profile_row *rows = rows_resolve(cells, histogram->n_used, resolver, event_names);

	g_free(cells);
	*n = profile_rows_group(rows, histogram->n_used, list);
	return rows;
}

static struct histogram_hit *hits_of(const struct histogram *histogram, bool host, size_t *n)
{
	struct cell *cells = histogram_sorted(histogram);
	struct histogram_hit *hits = g_new(struct histogram_hit, histogram->n_used);
	size_t kept = 0;

	for (size_t i = 0; i < histogram->n_used; i++)
		if (host ? cells[i].mode == PROFILE_HYPERVISOR && vprof_exit_is_host(cells[i].ip)
		         : cells[i].mode != PROFILE_HYPERVISOR)
			hits[kept++] = (struct histogram_hit){cells[i].ip, cells[i].mapping};
	g_free(cells);
	*n = kept;
	return hits;
}

struct histogram_hit *histogram_hits(const struct histogram *histogram, size_t *n)
{
	return hits_of(histogram, false, n);
}

struct histogram_hit *histogram_host_hits(const struct histogram *histogram, size_t *n)
{
	return hits_of(histogram, true, n);
}
