// SPDX-License-Identifier: BSD-2-Clause
#include "run/agent_mappings.h"

#include <string.h>
#include <vprof/recording.h>

#include "lib/record/clock.h"
#include "run/agent_clock.h"
#include "ui/message.h"
#include "ui/text.h"

#define ANSWER_MAX 32768u  /* mappings of one answer; limits what a guest can send */
#define RECORDS_MAX 65536u /* of a recording */

#define INIT_PID 1u

struct said {
	uint64_t start, bytes, offset;
	uint32_t pid;
	const char *path;
};

struct agent_mappings {
	struct recorder *recorder;
	bool agent_is_init; /* which is then no process of the guest */
	bool asking;
	uint64_t asked_ns, answered_ns; /* CLOCK_MONOTONIC */
	uint64_t wait_ns;               /* the wait after an answer, at least as long as the answer took */
	GArray *answer;                 /* struct said, since the last MAPPINGS_END */
	GStringChunk *texts;            /* of it */
	GHashTable *comms;              /* that the recording contains, as text */
	unsigned records;               /* written to the recording */
};

struct agent_mappings *agent_mappings_new(struct recorder *recorder)
{
	struct agent_mappings *mappings = g_new0(struct agent_mappings, 1);

	mappings->recorder = recorder;
	mappings->answer = g_array_new(FALSE, FALSE, sizeof(struct said));
	mappings->texts = g_string_chunk_new(4096);
	mappings->comms = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	return mappings;
}

void agent_mappings_free(struct agent_mappings *mappings)
{
	if (!mappings)
		return;
	g_array_unref(mappings->answer);
	g_string_chunk_free(mappings->texts);
	g_hash_table_unref(mappings->comms);
	g_free(mappings);
}

/* ---- questions ---- */

static bool have_pid(const struct agent_mappings *mappings)
{
	return json_is_true(json_object_get(recorder_session(mappings->recorder), "tasks"));
}

bool agent_mappings_are_wanted(const struct agent_mappings *mappings)
{
	return member_text(recorder_session(mappings->recorder), have_pid(mappings) ? "mappings-why" : "tasks-why") !=
	       NULL;
}

static void answer_clear(struct agent_mappings *mappings)
{
	g_array_set_size(mappings->answer, 0);
	g_string_chunk_clear(mappings->texts);
}

void agent_mappings_greet(struct agent_mappings *mappings, const struct vprof_agent_hello *hello)
{
	mappings->agent_is_init = hello->is_init != 0;
	mappings->asking = false;
	mappings->answered_ns = 0;
	mappings->wait_ns = 0;
	answer_clear(mappings);
}

bool agent_mappings_is_due(const struct agent_mappings *mappings, uint64_t interval_ns)
{
	return !mappings->asking && agent_mappings_are_wanted(mappings) &&
	       clock_ns(CLOCK_MONOTONIC) - mappings->answered_ns >= MAX(mappings->wait_ns, interval_ns);
}

void agent_mappings_ask(struct agent_mappings *mappings, GByteArray *to_agent, uint32_t pid)
{
	answer_clear(mappings);
	mappings->asking = true;
	mappings->asked_ns = clock_ns(CLOCK_MONOTONIC);
	agent_say_mappings(to_agent, pid);
}

bool agent_mappings_is_asking(const struct agent_mappings *mappings)
{
	return mappings->asking;
}

bool agent_mappings_names_past(const struct agent_mappings *mappings)
{
	return agent_mappings_are_wanted(mappings) && !have_pid(mappings);
}

/* ---- answers ---- */

/* Limits how much a guest can add to a recording. */
static bool is_full(struct agent_mappings *mappings)
{
	if (mappings->records == RECORDS_MAX)
		warn("the agent in the guest has told of %u mappings and names; those to come are left out",
		     mappings->records++);
	return mappings->records >= RECORDS_MAX;
}

static void write_one(struct agent_mappings *mappings, uint32_t pid, const struct said *said, const char *path)
{
	if (!is_full(mappings) &&
	    recorder_mapping(mappings->recorder, pid, said->start, said->bytes, said->offset, path))
		mappings->records++;
}

/*
 * Removes overlapping mappings of samples without pids. The same place of the same file is kept, as for a parent and
 * its child; otherwise a sample cannot be assigned, and earlier mappings of that range are void.
 */
static void write_cluster(struct agent_mappings *mappings, const struct said *said, guint n)
{
	bool same = true;

	for (guint i = 1; i < n; i++)
		same &= strcmp(said[i].path, said[0].path) == 0 &&
		        said[i].start - said[i].offset == said[0].start - said[0].offset;
	for (guint i = 0; i < n; i++) {
		const struct said nothing = {.start = said[i].start, .bytes = said[i].bytes};

		write_one(mappings, 0, same ? &said[i] : &nothing, same ? said[i].path : VPROF_UNMAPPED);
	}
}

static gint compare_starts(gconstpointer one, gconstpointer other)
{
	const struct said *a = one, *b = other;

	return (a->start > b->start) - (a->start < b->start);
}

static void write_without_pids(struct agent_mappings *mappings)
{
	const struct said *said = (const struct said *)(void *)mappings->answer->data;
	guint from = 0;
	uint64_t end = 0;

	if (mappings->answer->len == 0)
		return;
	g_array_sort(mappings->answer, compare_starts);
	for (guint i = 0; i < mappings->answer->len; i++) {
		if (said[i].start >= end) {
			write_cluster(mappings, said + from, i - from);
			from = i;
		}
		end = MAX(end, said[i].start + said[i].bytes);
	}
	write_cluster(mappings, said + from, mappings->answer->len - from);
}

static void write_with_pids(struct agent_mappings *mappings)
{
	for (guint i = 0; i < mappings->answer->len; i++) {
		const struct said *said = &g_array_index(mappings->answer, struct said, i);

		write_one(mappings, said->pid, said, said->path);
	}
}

static void take_mapping(struct agent_mappings *mappings, const struct vprof_agent_mapping *mapping, const char *path)
{
	uint64_t end;

	if (path[0] != '/' || mapping->bytes == 0 || __builtin_add_overflow(mapping->start, mapping->bytes, &end) ||
	    (mappings->agent_is_init && mapping->pid == INIT_PID) || mappings->answer->len == ANSWER_MAX)
		return;
	const struct said said = {mapping->start, mapping->bytes, mapping->offset, mapping->pid,
	                          g_string_chunk_insert_const(mappings->texts, path)};

	g_array_append_val(mappings->answer, said);
}

static void take_task(struct agent_mappings *mappings, const struct vprof_agent_task *task, const char *comm)
{
	if (is_full(mappings) ||
	    !g_hash_table_add(mappings->comms, g_strdup_printf("%u %u %s", task->pid, task->tid, comm)))
		return;
	mappings->records++;
	recorder_comm(mappings->recorder, task->pid, task->tid, comm);
}

static void take_end(struct agent_mappings *mappings)
{
	if (have_pid(mappings))
		write_with_pids(mappings);
	else
		write_without_pids(mappings);
	answer_clear(mappings);
	mappings->asking = false;
	mappings->answered_ns = clock_ns(CLOCK_MONOTONIC);
	mappings->wait_ns = AGENT_ANSWER_SHARE * (mappings->answered_ns - mappings->asked_ns);
}

void agent_mappings_take(struct agent_mappings *mappings, const struct agent_message *message)
{
	if (!mappings->asking)
		return;
	switch (message->type) {
	case VPROF_AGENT_TASK:
		take_task(mappings, &message->task, message->text);
		break;
	case VPROF_AGENT_MAPPING:
		take_mapping(mappings, &message->mapping, message->text);
		break;
	case VPROF_AGENT_MAPPINGS_END:
		take_end(mappings);
		break;
	default:
		break;
	}
}
