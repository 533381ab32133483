// SPDX-License-Identifier: BSD-2-Clause
#include "agent_mappings.h"

#include <string.h>

#include "message.h"
#include "text.h"

#define ANSWER_MAX 4096u   /* mappings of one answer; a guest may say what it likes */
#define RECORDS_MAX 65536u /* of a recording */

/* The guest's init, which is the agent. */
#define AGENT_PID 1u

struct said {
	uint64_t start, bytes, offset;
	uint32_t pid;
	const char *path;
};

struct agent_mappings {
	struct capture *capture;
	bool by_pid;
	GArray *answer;      /* struct said, since the last MAPPINGS_END */
	GHashTable *written; /* what the recording has already, as text */
	GStringChunk *texts;
};

struct agent_mappings *agent_mappings_new(struct capture *capture)
{
	const json_t *session = capture_session(capture);
	bool tasks = json_is_true(json_object_get(session, "tasks"));
	struct agent_mappings *mappings;

	if (member_text(session, tasks ? "mappings-why" : "tasks-why") == NULL)
		return NULL;
	mappings = g_new0(struct agent_mappings, 1);
	mappings->capture = capture;
	mappings->by_pid = tasks;
	mappings->answer = g_array_new(FALSE, FALSE, sizeof(struct said));
	mappings->written = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	mappings->texts = g_string_chunk_new(4096);
	return mappings;
}

void agent_mappings_free(struct agent_mappings *mappings)
{
	if (mappings == NULL)
		return;
	g_array_unref(mappings->answer);
	g_hash_table_unref(mappings->written);
	g_string_chunk_free(mappings->texts);
	g_free(mappings);
}

/* Whether this is news, of which there is an end. */
static bool is_new(struct agent_mappings *mappings, char *text)
{
	if (g_hash_table_size(mappings->written) < RECORDS_MAX)
		return g_hash_table_add(mappings->written, text);
	g_free(text);
	return false;
}

static bool overlap(const struct said *one, const struct said *other)
{
	return one->start < other->start + other->bytes && other->start < one->start + one->bytes;
}

/* Without pids: whether another process has another file there, or another place of it. */
static bool is_ambiguous(const struct agent_mappings *mappings, const struct said *said)
{
	for (guint i = 0; i < mappings->answer->len; i++) {
		const struct said *other = &g_array_index(mappings->answer, struct said, i);

		if (other->pid != said->pid && overlap(said, other) &&
		    (strcmp(said->path, other->path) != 0 ||
		     said->start - said->offset != other->start - other->offset))
			return true;
	}
	return false;
}

static void answer_write(struct agent_mappings *mappings)
{
	for (guint i = 0; i < mappings->answer->len; i++) {
		const struct said *said = &g_array_index(mappings->answer, struct said, i);
		const uint32_t pid = mappings->by_pid ? said->pid : 0;

		if (!mappings->by_pid && is_ambiguous(mappings, said))
			continue;
		if (is_new(mappings, g_strdup_printf("%u %" G_GINT64_MODIFIER "x %" G_GINT64_MODIFIER
		                                     "x %" G_GINT64_MODIFIER "x %s",
		                                     pid, said->start, said->bytes, said->offset, said->path)))
			capture_mapping(mappings->capture, pid, said->start, said->bytes, said->offset, said->path);
	}
	g_array_set_size(mappings->answer, 0);
	g_string_chunk_clear(mappings->texts);
}

static void mapping_take(struct agent_mappings *mappings, const struct vprof_agent_mapping *mapping, const char *path)
{
	const struct said said = {mapping->start, mapping->bytes, mapping->offset, mapping->pid,
	                          g_string_chunk_insert_const(mappings->texts, path)};
	uint64_t end;

	if (path[0] == '/' && said.bytes != 0 && !__builtin_add_overflow(said.start, said.bytes, &end) &&
	    said.pid != AGENT_PID && mappings->answer->len < ANSWER_MAX)
		g_array_append_val(mappings->answer, said);
}

void agent_mappings_take(struct agent_mappings *mappings, const struct agent_message *message)
{
	const struct vprof_agent_task *task = &message->task;

	switch (message->type) {
	case VPROF_AGENT_TASK:
		if (is_new(mappings, g_strdup_printf("%u %u %s", task->pid, task->tid, message->text)))
			capture_comm(mappings->capture, task->pid, task->tid, message->text);
		break;
	case VPROF_AGENT_MAPPING:
		mapping_take(mappings, &message->mapping, message->text);
		break;
	case VPROF_AGENT_MAPPINGS_END:
		answer_write(mappings);
		break;
	default:
		break;
	}
}
