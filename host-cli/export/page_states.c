// SPDX-License-Identifier: BSD-2-Clause
#include "export/page_states.h"

#include <string.h>

#include "lib/profile/hash.h"
#include "lib/profile/slices.h"

struct page_states_reading {
	struct names *names;
	int waits, runs;     /* numbers of events */
	GHashTable *numbers; /* tid -> number + 1 */
	GArray *threads;     /* of struct page_thread */
	GHashTable *cells;   /* of struct page_state_cell, which are their own keys, owned */
	struct slices slices;
	bool reached; /* slices have begun */
};

static guint cell_hash(gconstpointer key)
{
	const struct page_state_cell *cell = key;

	return (guint)hash_mix(((uint64_t)cell->thread << 8 | cell->state) ^ hash_mix(cell->slice));
}

static gboolean cell_equal(gconstpointer a, gconstpointer b)
{
	const struct page_state_cell *left = a, *right = b;

	return left->thread == right->thread && left->state == right->state && left->slice == right->slice;
}

static GHashTable *cells_new(void)
{
	return g_hash_table_new_full(cell_hash, cell_equal, g_free, NULL);
}

static void cell_add(GHashTable *cells, const struct page_state_cell *cell)
{
	struct page_state_cell *known = g_hash_table_lookup(cells, cell);

	if (known)
		known->ns += cell->ns;
	else
		g_hash_table_add(cells, g_memdup2(cell, sizeof(*cell)));
}

/* Exact waits rather than looks; with time that tasks ran. */
struct page_states_reading *page_states_begin(const struct input *input)
{
	struct page_states_reading *reading;
	int waits = -1, runs = -1;

	for (unsigned i = 0; i < recording_n_events(input->recording); i++) {
		const struct recording_event *event = recording_event(input->recording, i);

		if (strcmp(event->name, VPROF_OFF_CPU_EVENT) == 0)
			waits = (int)i;
		else if (strcmp(event->name, VPROF_WALL_EVENT) == 0)
			waits = waits < 0 ? (int)i : waits;
		else if (runs < 0 && recording_event_counts_time(event))
			runs = (int)i;
	}
	if (waits < 0)
		return NULL;
	reading = g_new0(struct page_states_reading, 1);
	reading->names = input->names;
	reading->waits = waits;
	reading->runs = runs;
	reading->numbers = g_hash_table_new(NULL, NULL);
	reading->threads = g_array_new(FALSE, FALSE, sizeof(struct page_thread));
	reading->cells = cells_new();
	reading->slices.shift = SLICES_SHIFT_AT_FIRST;
	return reading;
}

/* False: it is one too many. */
static bool thread_number(struct page_states_reading *reading, const struct record_sample *sample, uint32_t *number)
{
	guint known = GPOINTER_TO_UINT(g_hash_table_lookup(reading->numbers, GUINT_TO_POINTER(sample->tid)));

	if (known == 0) {
		const struct page_thread thread = {.pid = sample->pid, .tid = sample->tid};

		if (reading->threads->len >= PAGE_THREADS_SEEN_MAX)
			return false;
		g_array_append_val(reading->threads, thread);
		known = reading->threads->len;
		g_hash_table_insert(reading->numbers, GUINT_TO_POINTER(sample->tid), GUINT_TO_POINTER(known));
	}
	*number = known - 1;
	return true;
}

static void cells_join(struct page_states_reading *reading, unsigned bits)
{
	GHashTable *joined = cells_new();
	GHashTableIter iterator;
	gpointer key;

	g_hash_table_iter_init(&iterator, reading->cells);
	while (g_hash_table_iter_next(&iterator, &key, NULL)) {
		struct page_state_cell cell = *(struct page_state_cell *)key;

		cell.slice >>= bits;
		cell_add(joined, &cell);
	}
	g_hash_table_unref(reading->cells);
	reading->cells = joined;
	slices_join(&reading->slices, bits);
}

static void reach(struct page_states_reading *reading, uint64_t time_ns)
{
	const unsigned bits = slices_reach(&reading->slices, time_ns, !reading->reached, PAGE_STATE_SLICES_MAX);

	reading->reached = true;
	if (bits != 0)
		cells_join(reading, bits);
}

/* As much of begin_ns..end_ns in each slice as it has of it. */
static void span_add(struct page_states_reading *reading, uint32_t thread, uint32_t state, uint64_t begin_ns,
                     uint64_t end_ns)
{
	const unsigned shift = reading->slices.shift;

	for (uint64_t slice = begin_ns >> shift; slice <= (end_ns - 1) >> shift; slice++) {
		const uint64_t from = MAX(begin_ns, slice << shift);
		const uint64_t last = MIN(end_ns - 1, (slice << shift) + slices_ns(&reading->slices) - 1);
		const struct page_state_cell cell = {thread, state, slice, last - from + 1};

		cell_add(reading->cells, &cell);
	}
}

static bool is_active(unsigned state)
{
	return state == VPROF_TASK_RUNNING || state == VPROF_TASK_RUNNABLE || state == VPROF_TASK_DISK_SLEEP;
}

void page_states_take(struct page_states_reading *reading, const struct record_sample *sample, unsigned event,
                      uint64_t from_ns)
{
	const uint64_t end_ns = sample->time_ns;
	const uint64_t begin_ns = MAX(end_ns - MIN(sample->period, end_ns), MIN(from_ns, end_ns));
	const unsigned state = (int)event == reading->waits ? profile_state_of(sample->misc) : VPROF_TASK_RUNNING;
	uint32_t number;

	/* The idle tasks are no tasks. */
	if (((int)event != reading->waits && (int)event != reading->runs) || sample->tid == 0 ||
	    sample->tid == VPROF_PID_UNKNOWN || begin_ns == end_ns || !thread_number(reading, sample, &number))
		return;
	struct page_thread *thread = &g_array_index(reading->threads, struct page_thread, number);

	thread->comm = names_comm(reading->names, sample->tid, end_ns);
	thread->all_ns += end_ns - begin_ns;
	thread->active_ns += is_active(state) ? end_ns - begin_ns : 0;
	reach(reading, begin_ns);
	reach(reading, end_ns - 1);
	span_add(reading, number, state, begin_ns, end_ns);
	/* Down to half at once, so that it does not happen at every sample. */
	if (g_hash_table_size(reading->cells) > PAGE_STATE_CELLS_MAX)
		while (reading->slices.last > reading->slices.first && reading->slices.shift < 63 &&
		       g_hash_table_size(reading->cells) > PAGE_STATE_CELLS_MAX / 2)
			cells_join(reading, 1);
}

/* ---- the result ---- */

static int threads_compare(gconstpointer a, gconstpointer b, gpointer threads)
{
	const struct page_thread *left = &g_array_index((GArray *)threads, struct page_thread, *(const uint32_t *)a);
	const struct page_thread *right = &g_array_index((GArray *)threads, struct page_thread, *(const uint32_t *)b);

	if (left->active_ns != right->active_ns)
		return left->active_ns > right->active_ns ? -1 : 1;
	if (left->all_ns != right->all_ns)
		return left->all_ns > right->all_ns ? -1 : 1;
	return (left->tid > right->tid) - (left->tid < right->tid);
}

static int cells_compare(gconstpointer a, gconstpointer b)
{
	const struct page_state_cell *left = a, *right = b;

	if (left->slice != right->slice)
		return left->slice < right->slice ? -1 : 1;
	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return (left->state > right->state) - (left->state < right->state);
}

/* The first of them become the result's; place: their numbers there, UINT32_MAX: left out. */
static uint32_t *threads_choose(const struct page_states_reading *reading, struct page_states *states)
{
	const guint n = reading->threads->len;
	uint32_t *place = g_new(uint32_t, n + 1);
	g_autofree uint32_t *order = g_new(uint32_t, n + 1);

	for (guint i = 0; i < n; i++)
		order[i] = i;
	if (n > 0)
		g_qsort_with_data(order, (gint)n, sizeof(*order), threads_compare, reading->threads);
	for (guint i = 0; i < n; i++) {
		place[order[i]] = i < PAGE_THREADS_SHOWN_MAX ? i : UINT32_MAX;
		if (i < PAGE_THREADS_SHOWN_MAX)
			g_array_append_val(states->threads,
			                   g_array_index(reading->threads, struct page_thread, order[i]));
	}
	states->left_out = n > PAGE_THREADS_SHOWN_MAX ? n - PAGE_THREADS_SHOWN_MAX : 0;
	return place;
}

struct page_states *page_states_end(struct page_states_reading *reading)
{
	struct page_states *states;
	GHashTableIter iterator;
	gpointer key;

	if (!reading)
		return NULL;
	states = g_new0(struct page_states, 1);
	states->threads = g_array_new(FALSE, FALSE, sizeof(struct page_thread));
	states->cells = g_array_new(FALSE, FALSE, sizeof(struct page_state_cell));
	states->slice_ns = slices_ns(&reading->slices);
	g_autofree uint32_t *place = threads_choose(reading, states);

	g_hash_table_iter_init(&iterator, reading->cells);
	while (g_hash_table_iter_next(&iterator, &key, NULL)) {
		struct page_state_cell cell = *(struct page_state_cell *)key;

		cell.thread = place[cell.thread];
		if (cell.thread != UINT32_MAX)
			g_array_append_val(states->cells, cell);
	}
	g_array_sort(states->cells, cells_compare);
	g_hash_table_unref(reading->numbers);
	g_array_unref(reading->threads);
	g_hash_table_unref(reading->cells);
	g_free(reading);
	return states;
}

void page_states_free(struct page_states *states)
{
	if (!states)
		return;
	g_array_unref(states->threads);
	g_array_unref(states->cells);
	g_free(states);
}
