// SPDX-License-Identifier: BSD-2-Clause
#include "tasks/task_samples.h"

#include <vprof/recording.h>

#include "engine/engine_process.h"
#include "engine/session_events.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"

#define SAMPLING_US (100 * 1000) /* a hundred samples of each vCPU that runs, by default */

static void row_sampled(struct task_table *table, struct task_row *row, const struct record_sample *sample)
{
#define X(id, name, text) [id] = name,
	static const char *const ends[] = {VPROF_CHAIN_ENDS(X)};
#undef X
	const unsigned end = (sample->misc & VPROF_CHAIN_END_MASK) >> VPROF_CHAIN_END_SHIFT;

	table->unseen -= row->n_frames == 0 && table->unseen > 0;
	task_row_set_chain(row, sample->chain, sample->n_chain,
	                   end < G_N_ELEMENTS(ends) && ends[end] ? ends[end] : "whole");
}

/* Samples outside the guest, and of what has come onto a vCPU since the tasks were read, say nothing here. */
static void sample_take(struct task_table *table, GHashTable *running, const struct record_sample *sample)
{
	const uint16_t mode = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct task_row *row = g_hash_table_lookup(running, GUINT_TO_POINTER(sample->tid));

	if (row && sample->n_chain != 0 && (mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_USER))
		row_sampled(table, row, sample);
}

static void ring_take(struct task_table *table, GHashTable *running, struct ring_reader *ring,
                      const struct recording_event *event)
{
	const struct perf_event_header *record;
	struct record_sample sample;
	size_t bytes;

	while ((record = ring_reader_next(ring, &bytes)))
		if (record->type == PERF_RECORD_SAMPLE &&
		    record_sample_decode(record, bytes, event->attr.sample_type, &sample))
			sample_take(table, running, &sample);
}

static GHashTable *running_rows(const struct task_table *table)
{
	GHashTable *running = g_hash_table_new(NULL, NULL);

	for (guint i = 0; i < table->rows->len; i++) {
		struct task_row *row = g_ptr_array_index(table->rows, i);

		if (row->cpu >= 0 && row->n_frames == 0)
			g_hash_table_insert(running, GUINT_TO_POINTER(row->tid), row);
	}
	return running;
}

void task_samples_add(struct task_table *table, const struct guest_engine *engine)
{
	json_t *arguments = json_pack("{s:s, s:b}", "call-graph", "auto", "call-user", 0);
	json_t *session = engine_ask(engine->client, "session-start", arguments, NULL);
	g_autoptr(GHashTable) running = running_rows(table);
	size_t n_events = 0;
	struct recording_event *events = session ? session_events_parse(session, &n_events, NULL) : NULL;

	if (events) {
		g_autoptr(GPtrArray) rings = g_ptr_array_new_with_free_func((GDestroyNotify)ring_reader_free);

		session_rings_get(engine->client, "rings", NULL, rings, NULL, NULL);
		g_usleep(SAMPLING_US);
		for (guint i = 0; i < rings->len; i++)
			ring_take(table, running, g_ptr_array_index(rings, i), &events[0]);
	}
	if (session)
		engine_tell(engine->client, "session-stop", NULL, NULL);
	session_events_free(events, n_events);
	json_decref(session);
}
