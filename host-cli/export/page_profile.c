// SPDX-License-Identifier: BSD-2-Clause
#include "export/page_profile.h"

#include <stdlib.h>
#include <string.h>

#include "export/page_rows.h"
#include "lib/profile/hash.h"
#include "lib/profile/slices.h"

/* From `time_ns` on, the samples are of these phases. */
struct phase_change {
	uint64_t time_ns;
	uint32_t phase_set;
};

#define ROWS_RECENT 4096u
#define RECENT_CPU_STRIDE 509u /* so that nodes of several vCPUs do not meet */

/* The rows of one event. Slices are also joined when there are too many rows. */
struct row_set {
	struct page_rows rows;
	uint32_t recent[ROWS_RECENT]; /* numbers + 1, by node and vCPU: a stack is seen again and again; 0: none */
	struct slices slices;
};

struct reading {
	struct page_recording *recording;
	struct call_tree_room room;
	GHashTable *tasks;     /* comm, pid and cgroup -> number + 1 */
	struct page_task task; /* of the last sample, and its number */
	uint32_t task_number;
	GArray *changes;          /* of struct phase_change, by time */
	struct call_tree **trees; /* of each event, and of the first one and the waits */
	struct row_set *rows;     /* the same */
	int waits;                /* the event of waits in the last profile; -1: there is none */
	struct timeline **timelines;
	struct page_states_reading *states; /* NULL: no waits */
};

/* Phases: a list of the times at which something begins or ends. */

struct edge {
	uint64_t time_ns;
	uint32_t phase;
	bool begins;
};

static int edges_compare(const void *a, const void *b)
{
	const struct edge *left = a, *right = b;

	return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

static GArray *edges_of(const GPtrArray *phases)
{
	GArray *edges = g_array_new(FALSE, FALSE, sizeof(struct edge));

	for (guint i = 0; i < MIN(phases->len, PAGE_PHASES_MAX); i++) {
		const struct phase_named *phase = g_ptr_array_index(phases, i);

		for (guint j = 0; j < phase->spans->len; j++) {
			const struct phase_span *span = &g_array_index(phase->spans, struct phase_span, j);
			const struct edge begin = {span->begin_ns, i, true}, end = {span->end_ns, i, false};

			g_array_append_val(edges, begin);
			g_array_append_val(edges, end);
		}
	}
	g_array_sort(edges, edges_compare);
	return edges;
}

static guint phase_set_hash(gconstpointer key)
{
	const struct page_phase_set *set = key;
	uint64_t hash = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(set->bits); i++)
		hash = hash_mix(hash ^ set->bits[i]);
	return (guint)hash;
}

static gboolean phase_set_equal(gconstpointer a, gconstpointer b)
{
	return memcmp(a, b, sizeof(struct page_phase_set)) == 0;
}

/* The number of the set among the recording's; `known`: set -> number + 1. */
static uint32_t phase_set_number(GArray *sets, GHashTable *known, const struct page_phase_set *set)
{
	guint number = GPOINTER_TO_UINT(g_hash_table_lookup(known, set));

	if (number == 0) {
		g_array_append_val(sets, *set);
		number = sets->len;
		g_hash_table_insert(known, g_memdup2(set, sizeof(*set)), GUINT_TO_POINTER(number));
	}
	return number - 1;
}

static void phases_read(struct reading *reading)
{
	struct page_recording *recording = reading->recording;
	g_autoptr(GHashTable) known = g_hash_table_new_full(phase_set_hash, phase_set_equal, g_free, NULL);
	g_autoptr(GArray) edges = NULL;
	struct page_phase_set now = {0};

	recording->phases = phases_all(recording->input->description);
	recording->phase_sets = g_array_new(FALSE, FALSE, sizeof(now));
	reading->changes = g_array_new(FALSE, FALSE, sizeof(struct phase_change));
	phase_set_number(recording->phase_sets, known, &now);
	edges = edges_of(recording->phases);
	for (guint i = 0; i < edges->len; i++) {
		const struct edge *edge = &g_array_index(edges, struct edge, i);
		const uint64_t bit = UINT64_C(1) << edge->phase % 64;

		if (edge->begins)
			now.bits[edge->phase / 64] |= bit;
		else
			now.bits[edge->phase / 64] &= ~bit;
		if (i + 1 == edges->len || edge[1].time_ns != edge->time_ns) {
			const struct phase_change change = {
				.time_ns = edge->time_ns,
				.phase_set = phase_set_number(recording->phase_sets, known, &now),
			};

			g_array_append_val(reading->changes, change);
		}
	}
}

static uint32_t phase_set_at(const GArray *changes, uint64_t time_ns)
{
	guint low = 0, high = changes->len;

	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (g_array_index(changes, struct phase_change, middle).time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low != 0 ? g_array_index(changes, struct phase_change, low - 1).phase_set : 0;
}

/* Samples. */

static guint task_hash(gconstpointer key)
{
	const struct page_task *task = key;

	return (guint)hash_mix((uintptr_t)task->comm ^ hash_mix((uintptr_t)task->cgroup ^ hash_mix(task->pid)));
}

/* struct names has each text once. */
static gboolean task_equal(gconstpointer a, gconstpointer b)
{
	const struct page_task *left = a, *right = b;

	return left->pid == right->pid && left->comm == right->comm && left->cgroup == right->cgroup;
}

static uint32_t task_number(struct reading *reading, const struct record_sample *sample)
{
	struct page_recording *recording = reading->recording;
	struct names *names = recording->input->names;
	const struct page_task task = {
		.comm = names_comm(names, sample->tid, sample->time_ns),
		.cgroup = sample->has_cgroup ? names_cgroup(names, sample) : NULL,
		.pid = sample->pid,
	};
	guint number;

	if (task_equal(&task, &reading->task))
		return reading->task_number;
	number = GPOINTER_TO_UINT(g_hash_table_lookup(reading->tasks, &task));
	if (number == 0) {
		g_array_append_val(recording->tasks, task);
		number = recording->tasks->len;
		g_hash_table_insert(reading->tasks, g_memdup2(&task, sizeof(task)), GUINT_TO_POINTER(number));
	}
	reading->task = task;
	reading->task_number = number - 1;
	return number - 1;
}

static void row_add_recent(struct row_set *set, const struct page_row *row)
{
	uint32_t *recent = &set->recent[(row->node + row->cpu * RECENT_CPU_STRIDE) % ROWS_RECENT];
	struct page_row *known = *recent != 0 ? &set->rows.rows[*recent - 1] : NULL;

	if (known && page_row_equal(known, row))
		page_row_grow(known, row);
	else
		*recent = page_rows_add(&set->rows, row) + 1;
}

static void row_join(struct page_row *row, const void *data)
{
	row->slice >>= *(const unsigned *)data;
}

static void rows_join(struct row_set *set, unsigned bits)
{
	page_rows_change(&set->rows, row_join, &bits);
	memset(set->recent, 0, sizeof(set->recent));
	slices_join(&set->slices, bits);
}

static void row_set_add(struct row_set *set, struct page_row *row, uint64_t time_ns)
{
	const bool is_first = set->rows.n == 0;
	unsigned bits = slices_reach(&set->slices, time_ns, is_first, PAGE_ROW_SLICES_MAX);

	if (bits != 0)
		rows_join(set, bits);
	row->slice = slices_at(&set->slices, time_ns);
	row_add_recent(set, row);
	/* Down to half at once, so that it does not happen at every sample. */
	if (set->rows.n > PAGE_ROWS_MAX)
		while (set->slices.last > set->slices.first && set->slices.shift < 63 &&
		       set->rows.n > PAGE_ROWS_MAX / 2)
			rows_join(set, 1);
}

static const char *waker_of(const struct reading *reading, const struct record_sample *sample)
{
	static const char none[] = "";

	return record_sample_wait(sample).waker != VPROF_WAKER_UNKNOWN
	               ? names_waker(reading->recording->input->names, sample)
	               : none;
}

/* To the profile of that number. */
static void sample_add(struct reading *reading, const struct record_sample *sample, size_t number)
{
	struct page_profile *profile = &reading->recording->profiles[number];
	struct page_row row = {
		.node = call_tree_add(reading->trees[number], sample),
		.cpu = sample->cpu,
		.task = task_number(reading, sample),
		.phase_set = phase_set_at(reading->changes, sample->time_ns),
		.state = profile_state_of(sample->misc),
		.waker = waker_of(reading, sample),
		.samples = 1,
		.period = sample->period,
	};

	row_set_add(&reading->rows[number], &row, sample->time_ns);
	/* What a vCPU does. */
	if (!profile->waits || profile_state_of(sample->misc) == VPROF_TASK_RUNNING)
		timeline_add(reading->timelines[number], sample);
	profile->samples++;
	profile->period += sample->period;
}

static bool sample_read(const struct record_sample *sample, unsigned event, void *data)
{
	struct reading *reading = data;
	struct page_recording *recording = reading->recording;

	sample_add(reading, sample, event);
	if (reading->waits >= 0 && (event == 0 || (int)event == reading->waits))
		sample_add(reading, sample, recording->n_profiles - 1);
	recording_counts_take(&recording->counts, sample);
	if (reading->states)
		page_states_take(reading->states, sample, event, recording->counts.first_ns);
	return true;
}

static int rows_compare(const void *a, const void *b)
{
	const struct page_row *left = a, *right = b;

	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	if (left->cpu != right->cpu)
		return left->cpu < right->cpu ? -1 : 1;
	if (left->task != right->task)
		return left->task < right->task ? -1 : 1;
	if (left->phase_set != right->phase_set)
		return left->phase_set < right->phase_set ? -1 : 1;
	if (left->state != right->state)
		return left->state < right->state ? -1 : 1;
	if (left->waker != right->waker)
		return strcmp(left->waker, right->waker);
	return (left->slice > right->slice) - (left->slice < right->slice);
}

static void row_resolve(struct page_row *row, const void *node_of)
{
	row->node = (uint32_t)((const size_t *)node_of)[row->node];
}

/* By functions instead of addresses, of which several may be one. */
static void rows_resolve(struct page_profile *profile, struct page_rows *rows, const size_t *node_of)
{
	page_rows_change(rows, row_resolve, node_of);
	profile->n_rows = rows->n;
	profile->rows = g_steal_pointer(&rows->rows);
	if (profile->n_rows != 0)
		qsort(profile->rows, profile->n_rows, sizeof(*profile->rows), rows_compare);
}

static void reading_start(struct reading *reading, size_t n)
{
	const struct page_recording *recording = reading->recording;

	reading->tasks = g_hash_table_new_full(task_hash, task_equal, g_free, NULL);
	reading->trees = g_new(struct call_tree *, n);
	reading->rows = g_new0(struct row_set, n);
	reading->timelines = g_new(struct timeline *, n);
	for (size_t i = 0; i < n; i++) {
		reading->trees[i] = call_tree_new(recording->input->names, &reading->room);
		reading->rows[i].slices.shift = SLICES_SHIFT_AT_FIRST;
		reading->timelines[i] = timeline_new();
	}
	if (reading->waits >= 0)
		call_tree_tell_waits(reading->trees[n - 1]);
	reading->states = page_states_begin(reading->recording->input);
	phases_read(reading);
}

static void reading_finish(struct reading *reading)
{
	struct page_recording *recording = reading->recording;

	for (size_t i = 0; i < recording->n_profiles; i++) {
		struct page_profile *profile = &recording->profiles[i];
		g_autofree size_t *node_of = NULL;

		if (!profile->event)
			profile->event = recording_event(recording->input->recording, i);
		profile->nodes = call_tree_resolve_numbers(reading->trees[i], recording->input->resolver,
		                                           &profile->n_nodes, &node_of);
		rows_resolve(profile, &reading->rows[i].rows, node_of);
		profile->row_slice_ns = slices_ns(&reading->rows[i].slices);
		profile->cells = timeline_cells(reading->timelines[i], &profile->n_cells);
		profile->slice_ns = timeline_slice_ns(reading->timelines[i]);
		call_tree_free(reading->trees[i]);
		page_rows_clear(&reading->rows[i].rows);
		timeline_free(reading->timelines[i]);
	}
	recording->states = page_states_end(reading->states);
	g_free(reading->trees);
	g_free(reading->rows);
	g_free(reading->timelines);
	g_hash_table_unref(reading->tasks);
	g_array_unref(reading->changes);
}

struct page_recording *page_recording_read(struct input *input)
{
	static const struct input_visitor visitor = {.sample = sample_read};
	struct page_recording *recording = g_new0(struct page_recording, 1);
	struct reading reading = {.recording = recording};

	recording->input = input;
	recording->tasks = g_array_new(FALSE, FALSE, sizeof(struct page_task));
	recording->n_profiles = recording_n_events(input->recording);
	/* The last one is of the time that tasks run and wait. */
	reading.waits = recording->n_profiles > 0 ? input_waits_number(input, 0) : -1;
	recording->n_profiles += reading.waits >= 0;
	recording->profiles = g_new0(struct page_profile, recording->n_profiles);
	if (reading.waits >= 0) {
		recording->profiles[recording->n_profiles - 1].event = recording_event(input->recording, 0);
		recording->profiles[recording->n_profiles - 1].waits =
			recording_event(input->recording, (size_t)reading.waits);
	}
	reading_start(&reading, recording->n_profiles);
	input_walk(input, &visitor, &reading);
	input_warn_cut(input, reading.room.cut);
	reading_finish(&reading);
	return recording;
}

void page_recording_free(struct page_recording *recording)
{
	if (!recording)
		return;
	for (size_t i = 0; i < recording->n_profiles; i++) {
		g_free(recording->profiles[i].nodes);
		g_free(recording->profiles[i].rows);
		g_free(recording->profiles[i].cells);
	}
	page_states_free(recording->states);
	g_free(recording->profiles);
	g_array_unref(recording->tasks);
	g_array_unref(recording->phase_sets);
	g_ptr_array_unref(recording->phases);
	g_free(recording);
}
