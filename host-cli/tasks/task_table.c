// SPDX-License-Identifier: BSD-2-Clause
#include "tasks/task_table.h"

#include <inttypes.h>
#include <string.h>
#include <vprof/control.h>

#include "engine/engine_modules.h"
#include "engine/engine_process.h"
#include "engine/guest_kernel.h"
#include "lib/profile/chain.h"
#include "lib/record/hex.h"
#include "lib/symbol/symtab.h"
#include "tasks/task_user.h"
#include "ui/message.h"
#include "ui/text.h"

#define UPPER_HALF (UINT64_C(1) << 63)
#define ROWS_MAX 65536u /* that an engine looks at */

/* ---- what the engine says ---- */

static void row_free(void *data)
{
	struct task_row *row = data;

	g_free(row->comm);
	g_free(row->cgroup);
	g_free(row->chain_end);
	g_free(row->frames);
	g_array_unref(row->mappings);
	json_decref(row->pythons);
	g_free(row);
}

static uint64_t address_of(const json_t *text)
{
	return json_is_string(text) ? g_ascii_strtoull(json_string_value(text), NULL, 16) : 0;
}

void task_row_set_chain(struct task_row *row, const uint64_t *chain, uint32_t n, const char *chain_end)
{
	const struct record_sample sample = {.chain = chain, .n_chain = n};
	g_autofree struct chain_frame *frames = g_new(struct chain_frame, CHAIN_FRAMES_MAX);

	g_free(row->frames);
	g_free(row->chain_end);
	row->wait_channel = NULL;
	row->chain_end = text_printable(chain_end);
	row->n_frames = n > 0 ? chain_frames(&sample, frames) : 0;
	row->frames = g_new0(struct task_frame, row->n_frames + 1);
	for (size_t i = 0; i < row->n_frames; i++)
		row->frames[i].ip = frames[i].ip;
}

static void chain_take(struct task_row *row, const json_t *task)
{
	const json_t *chain = json_object_get(task, "chain");
	const uint32_t n = (uint32_t)MIN(json_array_size(chain), CHAIN_FRAMES_MAX);
	g_autofree uint64_t *words = g_new(uint64_t, n + 1);

	for (uint32_t i = 0; i < n; i++)
		words[i] = address_of(json_array_get(chain, i));
	task_row_set_chain(row, words, n, member_text(task, "chain-end"));
}

/* The frame that the engine calls so. All but those that were interrupted have the address before. */
static void wait_channel_take(struct task_row *row, const json_t *task)
{
	const uint64_t address = address_of(json_object_get(task, "wait-channel"));

	for (size_t i = 0; address != 0 && i < row->n_frames && !row->wait_channel; i++)
		if (address - row->frames[i].ip <= 1)
			row->wait_channel = &row->frames[i];
}

static void mapping_clear(void *data)
{
	g_free(((struct task_mapping *)data)->file);
}

static void mappings_take(struct task_row *row, const json_t *task)
{
	const json_t *mappings = json_object_get(task, "mappings"), *taken;
	size_t i;

	row->mappings = g_array_new(FALSE, FALSE, sizeof(struct task_mapping));
	g_array_set_clear_func(row->mappings, mapping_clear);
	json_array_foreach(mappings, i, taken) {
		const char *file = member_text(taken, "file"), *build_id = member_text(taken, "build-id");
		struct task_mapping mapping = {.start = address_of(json_object_get(taken, "start")),
		                               .end = address_of(json_object_get(taken, "end")),
		                               .file_offset = address_of(json_object_get(taken, "file-offset")),
		                               .file = g_strdup(file ? file : ""),
		                               .has_table = json_is_true(json_object_get(taken, "table"))};

		if (build_id)
			mapping.build_id_bytes = hex_decode(build_id, mapping.build_id, sizeof(mapping.build_id));
		g_array_append_val(row->mappings, mapping);
	}
}

static struct task_row *row_new(const json_t *task)
{
	struct task_row *row = g_new0(struct task_row, 1);
	const char *state = member_text(task, "state"), *cgroup = member_text(task, "cgroup");

	row->pid = (uint32_t)member_number(task, "pid", 0);
	row->tid = (uint32_t)member_number(task, "tid", 0);
	row->comm = text_printable(member_text(task, "comm"));
	row->state = state && g_ascii_isalpha(state[0]) ? state[0] : '?';
	row->cpu = json_is_integer(json_object_get(task, "cpu")) ? (int64_t)member_number(task, "cpu", 0) : -1;
	row->cpu_ns = member_number(task, "cpu-ns", 0);
	row->kernel_thread = json_is_true(json_object_get(task, "kernel-thread"));
	row->cgroup = cgroup ? text_printable(cgroup) : NULL;
	chain_take(row, task);
	wait_channel_take(row, task);
	mappings_take(row, task);
	row->pythons = json_incref(json_object_get(task, "python"));
	return row;
}

static json_t *arguments_new(const struct task_wish *wish)
{
	json_t *arguments = json_pack("{s:i, s:b}", "depth", (int)(wish->depth ? wish->depth : VPROF_CALL_DEPTH_MAX),
	                              "user", wish->user);

	if (wish->who && wish->who[strspn(wish->who, "0123456789")] == '\0')
		json_object_set_new(arguments, "pid", json_integer(g_ascii_strtoll(wish->who, NULL, 10)));
	else if (wish->who)
		json_object_set_new(arguments, "comm", text_json(wish->who));
	return arguments;
}

/* The word that the engine says; the first, if it is none of them. */
static const char *word_of(const json_t *answer, const char *name, const char *const words[])
{
	const char *text = member_text(answer, name);

	for (size_t i = 0; words[i]; i++)
		if (g_strcmp0(text, words[i]) == 0)
			return words[i];
	return words[0];
}

static void answer_take(struct task_table *table, const json_t *answer)
{
	static const char *const ends[] = {"whole", "broken", "limit", NULL}, *const unwinders[] = {"orc", "fp", NULL};
	const json_t *tasks = json_object_get(answer, "tasks"), *task;
	size_t i;

	json_array_foreach(tasks, i, task)
		g_ptr_array_add(table->rows, row_new(task));
	table->list_end = word_of(answer, "list", ends);
	table->unwinder = word_of(answer, "unwinder", unwinders);
	table->torn = member_number(answer, "torn", 0);
	table->late = member_number(answer, "late", 0);
	table->unseen = member_number(answer, "unseen", 0);
}

/* The arguments that read on in a look; NULL: it is over. */
static json_t *arguments_next(const json_t *answer, uint64_t from)
{
	const uint64_t next = member_number(answer, "next", 0);

	return next > from ? json_pack("{s:I, s:I}", "look", (json_int_t)member_number(answer, "look", 0), "from",
	                               (json_int_t)next)
	                   : NULL;
}

static bool rows_read(struct task_table *table, struct client *client, const struct task_wish *wish, GError **error)
{
	json_t *arguments = arguments_new(wish), *answer;
	uint64_t from = 0;

	g_ptr_array_set_size(table->rows, 0);

	while (arguments && table->rows->len < ROWS_MAX) {
		answer = engine_ask(client, "query-tasks", arguments, error);
		if (!answer)
			return false;
		answer_take(table, answer);
		arguments = arguments_next(answer, from);
		from = member_number(answer, "next", 0);
		json_decref(answer);
	}
	json_decref(arguments);
	return true;
}

/* ---- the names of functions ---- */

static void frame_name(struct task_table *table, struct task_frame *frame, const char *symbol, const char *module)
{
	char address[2 + 16 + 1];

	g_snprintf(address, sizeof(address), "0x%" PRIx64, frame->ip);
	frame->known = symbol != NULL;
	frame->symbol = g_string_chunk_insert_const(table->texts, symbol ? symbol : address);
	frame->module = g_string_chunk_insert_const(table->texts, module);
}

static bool python_frame_name(struct task_table *table, const struct task_row *row, struct task_frame *frame)
{
	const json_t *python;
	size_t i;

	json_array_foreach(row->pythons, i, python) {
		const char *text = member_text(python, "name");

		/* Frames that called are one byte before the addresses of the chain. */
		if (!text || address_of(json_object_get(python, "ip")) - frame->ip > 1)
			continue;
		g_autofree char *name = text_printable(text);
		const char *file = python_name_split(name);

		if (!file)
			return false;
		frame_name(table, frame, name, file);
		return true;
	}
	return false;
}

static bool user_frame_name(struct task_table *table, const struct task_row *row, struct task_frame *frame)
{
	if (python_frame_name(table, row, frame))
		return true;
	for (guint i = 0; i < row->mappings->len; i++) {
		const struct task_mapping *mapping = &g_array_index(row->mappings, struct task_mapping, i);

		if (frame->ip < mapping->start || frame->ip >= mapping->end)
			continue;
		g_autofree char *file = text_printable(mapping->file);

		frame_name(table, frame, task_user_symbol(table->user, mapping, frame->ip), file);
		return true;
	}
	return false;
}

/* Those of the kernel itself; the addresses of the others in the kernel's half are added to `modules`. */
static void frames_name(struct task_table *table, const struct symtab *symtab, GHashTable *seen, GArray *modules)
{
	for (guint i = 0; i < table->rows->len; i++) {
		const struct task_row *row = g_ptr_array_index(table->rows, i);

		for (size_t k = 0; k < row->n_frames; k++) {
			struct task_frame *frame = &row->frames[k];
			const struct symbol *symbol = symtab ? symtab_find(symtab, frame->ip) : NULL;
			const bool kernel = frame->ip >= UPPER_HALF;

			if (!kernel && table->user && user_frame_name(table, row, frame))
				continue;
			frame_name(table, frame, symbol ? symbol->name : NULL, kernel ? "[kernel]" : "[user]");
			if (!symbol && kernel && g_hash_table_add(seen, g_memdup2(&frame->ip, sizeof(frame->ip))))
				g_array_append_val(modules, frame->ip);
		}
	}
}

static void module_symbol_take(uint64_t address, const struct recording_symbol *symbol, void *data)
{
	struct task_table *table = data;

	for (guint i = 0; i < table->rows->len; i++) {
		const struct task_row *row = g_ptr_array_index(table->rows, i);

		for (size_t k = 0; k < row->n_frames; k++)
			if (row->frames[k].ip == address)
				frame_name(table, &row->frames[k], symbol->name, symbol->module);
	}
}

bool task_table_name(struct task_table *table, const struct guest_engine *engine, const char *kernel, GError **error)
{
	g_autoptr(GHashTable) seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	g_autoptr(GArray) modules = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	g_autoptr(GError) why = NULL;
	struct guest_kernel found = guest_kernel_load(engine->client, engine->guest, kernel, &why);

	if (!found.symtab && kernel) {
		guest_kernel_clear(&found);
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	if (!found.symtab)
		table->no_symbols =
			g_strdup(g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_REMOTE) ? "its kernel is not known"
		                                                                         : why->message);
	frames_name(table, found.symtab, seen, modules);
	module_symbols_ask(engine->client, modules, module_symbol_take, table, NULL);
	guest_kernel_clear(&found);
	return true;
}

/* ---- the table ---- */

struct task_table *task_table_new(const struct guest_engine *engine, const struct task_wish *wish, GError **error)
{
	struct task_table *table = g_new0(struct task_table, 1);

	table->rows = g_ptr_array_new_with_free_func(row_free);
	table->texts = g_string_chunk_new(1 << 12);
	if (rows_read(table, engine->client, wish, error)) {
		if (wish->user)
			table->user = task_user_new(table, engine, &wish->user_files);
		/* Chains go further by tables that came since. */
		if (!table->user || !engine->own || rows_read(table, engine->client, wish, error))
			return table;
	}
	task_table_free(table);
	return NULL;
}

void task_table_free(struct task_table *table)
{
	if (!table)
		return;
	g_ptr_array_unref(table->rows);
	g_string_chunk_free(table->texts);
	task_user_free(table->user);
	g_free(table->no_symbols);
	g_free(table);
}

void task_table_say_missing(const struct task_table *table, bool stacks)
{
	if (strcmp(table->list_end, "broken") == 0)
		warn("the guest's list of tasks is damaged, or changed faster than it was read: tasks are missing");
	if (strcmp(table->list_end, "limit") == 0)
		warn("the guest has more tasks than are read: the first %u are shown", table->rows->len);
	if (table->torn != 0)
		warn("%" PRIu64 " tasks ran while their stacks were read: they have no call chain; look again",
		     table->torn);
	if (table->late != 0)
		warn("%" PRIu64 " tasks have no call chain: reading all of them takes too long; name a task",
		     table->late);
	if (stacks && table->unseen != 0)
		warn("%" PRIu64
		     " tasks run on a vCPU and have no call chain: what its vCPUs do is known by sampling alone, and no sample has them",
		     table->unseen);
	if (table->no_symbols)
		warn("functions have no names: %s", table->no_symbols);
}

/* ---- as JSON ---- */

json_t *task_table_json(const struct task_table *table, const char *format, const json_t *guest)
{
	return json_pack("{s:s, s:i, s:o, s:s, s:s, s:I, s:I, s:I}", "format", format, "version", 1, "guest",
	                 text_json(member_text(guest, "name")), "list", table->list_end, "unwinder", table->unwinder,
	                 "torn", (json_int_t)table->torn, "late", (json_int_t)table->late, "unseen",
	                 (json_int_t)table->unseen);
}

json_t *task_frame_json(const struct task_frame *frame)
{
	return json_pack("{s:o, s:o, s:o}", "ip", json_sprintf("0x%" PRIx64, frame->ip), "symbol",
	                 frame->known ? text_json(frame->symbol) : json_null(), "module", text_json(frame->module));
}

json_t *task_row_json(const struct task_row *row)
{
	const char state[] = {row->state, '\0'};

	return json_pack("{s:I, s:I, s:o, s:s, s:o, s:I, s:b, s:o, s:o}", "pid", (json_int_t)row->pid, "tid",
	                 (json_int_t)row->tid, "comm", text_json(row->comm), "state", state, "cpu",
	                 row->cpu < 0 ? json_null() : json_integer(row->cpu), "cpu-ns", (json_int_t)row->cpu_ns,
	                 "kernel-thread", row->kernel_thread, "cgroup", text_json(row->cgroup), "wait-channel",
	                 row->wait_channel ? task_frame_json(row->wait_channel) : json_null());
}
