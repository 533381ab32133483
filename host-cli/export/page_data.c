// SPDX-License-Identifier: BSD-2-Clause
#include "export/page_data.h"

#include <inttypes.h>
#include <string.h>
#include <vprof/exit.h>

#include "export/text_table.h"
#include "lib/record/exit_name.h"

/* A JSON string, printable; no "<", so that nothing in it ends the script tag or opens a comment there. */
static void text_write(const char *text, FILE *to)
{
	g_autofree char *printable = text_printable(text);

	fputc('"', to);
	for (const char *at = printable; *at != '\0'; at++) {
		if (strchr("<>&\"\\'", *at))
			fprintf(to, "\\u%04x", *at);
		else
			fputc(*at, to);
	}
	fputc('"', to);
}

static void member_write(const char *name, const char *text, FILE *to)
{
	fprintf(to, "\"%s\":", name);
	if (text)
		text_write(text, to);
	else
		fputs("null", to);
	fputc(',', to);
}

static const char *comma(size_t i)
{
	return i != 0 ? "," : "";
}

/* Functions, each once. */

struct frames {
	GHashTable *index; /* of struct frame, owned, which are their own keys */
	uint32_t n;
};

struct frame {
	const char *symbol, *module;
	enum profile_mode mode;
	uint32_t number;
};

static guint frame_hash(gconstpointer key)
{
	const struct frame *frame = key;

	return g_str_hash(frame->symbol) ^ g_str_hash(frame->module) << 2 ^ (guint)frame->mode;
}

static gboolean frame_equal(gconstpointer a, gconstpointer b)
{
	const struct frame *left = a, *right = b;

	return left->mode == right->mode && g_str_equal(left->symbol, right->symbol) &&
	       g_str_equal(left->module, right->module);
}

/* Writes a new one. */
static uint32_t frame_write(struct frames *frames, const struct call_node *node, struct text_table *strings, FILE *to)
{
	const struct frame key = {node->symbol, node->module, node->mode, frames->n};
	const struct frame *known = g_hash_table_lookup(frames->index, &key);

	if (known)
		return known->number;
	fprintf(to, "%s%u,%u,%u", comma(frames->n), text_table_number(strings, node->symbol),
	        text_table_number(strings, node->module), (unsigned)node->mode);
	g_hash_table_add(frames->index, g_memdup2(&key, sizeof(key)));
	return frames->n++;
}

/* The call tree, and the functions in it. */
static void nodes_write(const struct page_profile *profile, struct text_table *strings, FILE *to)
{
	struct frames frames = {.index = g_hash_table_new_full(frame_hash, frame_equal, g_free, NULL)};
	g_autofree uint32_t *frame_of = g_new(uint32_t, profile->n_nodes);
	g_autofree size_t *parents = g_new0(size_t, profile->n_nodes);

	fputs("\"frames\":[", to);
	for (size_t i = 0; i < profile->n_nodes; i++) {
		for (size_t child = profile->nodes[i].first_child; child != 0;
		     child = profile->nodes[child].next_sibling)
			parents[child] = i;
		if (i != 0)
			frame_of[i] = frame_write(&frames, &profile->nodes[i], strings, to);
	}
	fputs("],\"nodes\":[", to);
	for (size_t i = 1; i < profile->n_nodes; i++)
		fprintf(to, "%s%zu,%u", comma(i - 1), i - parents[i], frame_of[i]);
	fputs("],", to);
	g_hash_table_unref(frames.index);
}

static void rows_write(const struct page_profile *profile, struct text_table *strings, FILE *to)
{
	uint64_t first = UINT64_MAX;
	uint32_t above = 0;

	for (size_t i = 0; i < profile->n_rows; i++)
		first = MIN(first, profile->rows[i].slice);
	fprintf(to, "\"row-slice-ns\":%" PRIu64 ",\"first-row-slice\":\"%" PRIu64 "\",\"rows\":[",
	        profile->row_slice_ns, profile->n_rows != 0 ? first : 0);
	for (size_t i = 0; i < profile->n_rows; i++) {
		const struct page_row *row = &profile->rows[i];

		fprintf(to, "%s%u,%u,%u,%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64, comma(i), row->node - above,
		        row->cpu, row->task, row->phase_set, row->state, text_table_number(strings, row->waker),
		        row->slice - first, row->samples, row->period);
		above = row->node;
	}
	fputs("],", to);
}

static const char *reason_name(uint64_t reason)
{
	const char *name = exit_name_of_reason(reason);

	return name ? name : "other exits";
}

static void cells_write(const struct page_profile *profile, struct text_table *strings, FILE *to)
{
	uint64_t above = profile->n_cells != 0 ? profile->cells[0].slice : 0;

	fprintf(to, "\"slice-ns\":%" PRIu64 ",\"first-slice\":\"%" PRIu64 "\",\"cells\":[", profile->slice_ns, above);
	for (size_t i = 0; i < profile->n_cells; i++) {
		const struct timeline_cell *cell = &profile->cells[i];
		bool is_exit = cell->mode == PROFILE_HYPERVISOR;

		fprintf(to, "%s%" PRIu64 ",%u,%u,%u,%" PRIu64, comma(i), cell->slice - above, cell->cpu,
		        (unsigned)cell->mode, is_exit ? text_table_number(strings, reason_name(cell->exit_reason)) : 0,
		        cell->period);
		above = cell->slice;
	}
	fputs("]", to);
}

static void profile_write(const struct input *input, const struct page_profile *profile, struct text_table *strings,
                          FILE *to)
{
	g_autofree char *rate = recording_rate_text(input, profile->event);
	g_autofree char *events = profile->waits
	                                  ? g_strdup_printf("%s and %s", profile->event->name, profile->waits->name)
	                                  : g_strdup(profile->event->name);

	fputc('{', to);
	member_write("event", events, to);
	member_write("rate", rate, to);
	fprintf(to, "\"joined\":%s,", profile->waits ? "true" : "false");
	member_write("unit", recording_event_counts_time(profile->event) ? "ns" : "events", to);
	fprintf(to, "\"samples\":%" PRIu64 ",\"period\":%" PRIu64 ",", profile->samples, profile->period);
	nodes_write(profile, strings, to);
	rows_write(profile, strings, to);
	cells_write(profile, strings, to);
	fputc('}', to);
}

static void tasks_write(const struct page_recording *recording, struct text_table *strings, FILE *to)
{
	fputs("\"tasks\":[", to);
	for (guint i = 0; i < recording->tasks->len; i++) {
		const struct page_task *task = &g_array_index(recording->tasks, struct page_task, i);

		fprintf(to, "%s%u,%" PRId64 ",%u", comma(i), text_table_number(strings, task->comm),
		        task->pid != VPROF_PID_UNKNOWN ? (int64_t)task->pid : -1,
		        text_table_number(strings, task->cgroup ? task->cgroup : ""));
	}
	fputs("],", to);
}

/* Times as text: they do not fit into a number of JavaScript's. */
static void phases_write(const struct page_recording *recording, struct text_table *strings, FILE *to)
{
	guint n = MIN(recording->phases->len, PAGE_PHASES_MAX);

	fprintf(to, "\"phases-left-out\":%u,\"phases\":[", recording->phases->len - n);
	for (guint i = 0; i < n; i++) {
		const struct phase_named *phase = g_ptr_array_index(recording->phases, i);

		fprintf(to, "%s{\"name\":%u,\"spans\":[", comma(i), text_table_number(strings, phase->name));
		for (guint j = 0; j < phase->spans->len; j++) {
			const struct phase_span *span = &g_array_index(phase->spans, struct phase_span, j);

			fprintf(to, "%s\"%" PRIu64 "\",\"%" PRIu64 "\"", comma(j), span->begin_ns,
			        MIN(span->end_ns, recording->counts.last_ns));
		}
		fputs("]}", to);
	}
	fputs("],\"phase-sets\":[", to);
	for (guint i = 0; i < recording->phase_sets->len; i++) {
		const struct page_phase_set *set = &g_array_index(recording->phase_sets, struct page_phase_set, i);
		size_t written = 0;

		fprintf(to, "%s[", comma(i));
		for (guint phase = 0; phase < n; phase++)
			if ((set->bits[phase / 64] >> phase % 64 & 1) != 0)
				fprintf(to, "%s%u", comma(written++), phase);
		fputc(']', to);
	}
	fputs("],", to);
}

struct fact_writing {
	FILE *to;
	size_t n;
};

static void fact_write(const char *name, const char *text, void *data)
{
	struct fact_writing *writing = data;

	fputs(comma(writing->n++), writing->to);
	text_write(name, writing->to);
	fputc(',', writing->to);
	text_write(text, writing->to);
}

static void facts_write(const struct page_recording *recording, FILE *to)
{
	struct fact_writing writing = {.to = to};

	fputs("\"facts\":[", to);
	recording_head(recording->input, &recording->counts, fact_write, &writing);
	fputs("],", to);
}

static void states_write(const struct page_states *states, struct text_table *strings, FILE *to)
{
	uint64_t above = states->cells->len != 0 ? g_array_index(states->cells, struct page_state_cell, 0).slice : 0;

	fprintf(to,
	        "\"states\":{\"slice-ns\":%" PRIu64 ",\"first-slice\":\"%" PRIu64 "\",\"left-out\":%u,\"threads\":[",
	        states->slice_ns, above, states->left_out);
	for (guint i = 0; i < states->threads->len; i++) {
		const struct page_thread *thread = &g_array_index(states->threads, struct page_thread, i);

		fprintf(to, "%s%u,%u,%u", comma(i), text_table_number(strings, thread->comm), thread->pid, thread->tid);
	}
	fputs("],\"cells\":[", to);
	for (guint i = 0; i < states->cells->len; i++) {
		const struct page_state_cell *cell = &g_array_index(states->cells, struct page_state_cell, i);

		fprintf(to, "%s%" PRIu64 ",%u,%u,%" PRIu64, comma(i), cell->slice - above, cell->thread, cell->state,
		        cell->ns);
		above = cell->slice;
	}
	fputs("]},", to);
}

static void recording_write(const struct page_recording *recording, FILE *to)
{
	struct text_table strings;

	text_table_init(&strings);
	fputc('{', to);
	text_table_number(&strings, ""); /* 0 */
	member_write("path", recording->input->path, to);
	member_write("release", recording_release(recording->input->recording), to);
	member_write("selected-phase", recording->input->phase, to);
	fprintf(to,
	        "\"first-ns\":\"%" PRIu64 "\",\"last-ns\":\"%" PRIu64 "\",\"lost\":%" PRIu64 ",\"lost-others\":%" PRIu64
	        ",",
	        recording->counts.first_ns, recording->counts.last_ns, record_losses_samples(&recording->input->losses),
	        record_losses_others(&recording->input->losses));
	facts_write(recording, to);
	tasks_write(recording, &strings, to);
	phases_write(recording, &strings, to);
	if (recording->states)
		states_write(recording->states, &strings, to);
	fputs("\"profiles\":[", to);
	for (size_t i = 0; i < recording->n_profiles; i++) {
		fputs(comma(i), to);
		profile_write(recording->input, &recording->profiles[i], &strings, to);
	}
	fputs("],\"strings\":[", to);
	for (guint i = 0; i < strings.texts->len; i++) {
		fputs(comma(i), to);
		text_write(g_ptr_array_index(strings.texts, i), to);
	}
	fputs("]}", to);
	text_table_deinit(&strings);
}

static void fate_write(const struct change *change, FILE *to)
{
	const struct series *series = change_series(change);
	const struct series *other = change->fate == FATE_RENAMED ? change->now : change->other;

	fputc('{', to);
	member_write("fate", fate_name(change->fate), to);
	member_write("name", series->name, to);
	member_write("module", series->module, to);
	member_write("other", other->name, to);
	member_write("other-module", other->module, to);
	fprintf(to, "\"mode\":%u}", (unsigned)series->mode);
}

/* A function that only one side has, in every one of several repetitions, is not there by chance. */
static bool change_stands(const struct change *change, const struct page_comparison *compared)
{
	const bool only_one = !change->base || !change->now;

	return only_one ? compared->n_base > 1 && compared->n_now > 1 : change->stands;
}

static void standing_write(const struct change *changes, size_t n, const struct page_comparison *compared,
                           size_t *written, FILE *to)
{
	for (size_t i = 0; i < n; i++) {
		const struct series *series = change_series(&changes[i]);

		if (!change_stands(&changes[i], compared))
			continue;
		fprintf(to, "%s{", comma((*written)++));
		member_write("name", series->name, to);
		member_write("module", series->module, to);
		fprintf(to, "\"mode\":%u}", (unsigned)series->mode);
	}
}

/* What stands was tested with the first event of each recording. */
static void comparison_write(const struct page_comparison *compared, FILE *to)
{
	const struct comparison *comparison = compared->comparison;
	size_t written = 0;

	fputs(",\"fates\":[", to);
	for (size_t i = 0; i < comparison->n_only; i++)
		if (comparison->only[i].fate < FATE_NEW) {
			fputs(comma(written++), to);
			fate_write(&comparison->only[i], to);
		}
	written = 0;
	fputs("],\"standing\":[", to);
	standing_write(comparison->functions, comparison->n_functions, compared, &written, to);
	standing_write(comparison->only, comparison->n_only, compared, &written, to);
	fprintf(to, "],\"repetitions\":[%zu,%zu]", compared->n_base, compared->n_now);
}

void page_data_write(const struct page_recording *const *recordings, size_t n, const struct page_comparison *compared,
                     FILE *to)
{
	fputs("{\"version\":5,\"recordings\":[", to);
	for (size_t i = 0; i < n; i++) {
		fputs(comma(i), to);
		recording_write(recordings[i], to);
	}
	fputc(']', to);
	if (compared)
		comparison_write(compared, to);
	fputc('}', to);
}
