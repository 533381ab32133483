// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file of a recording: what is written besides the rings' records, and its end with the symbols of what was
 * sampled and the description of the run.
 */
#include <string.h>

#include "lib/record/clock.h"
#include "lib/record/processor.h"
#include "lib/record/record.h"
#include "record/recorder_priv.h"
#include "record/recorder_symbols.h"
#include "ui/message.h"
#include "ui/text.h"

/* ---- its beginning, and what becomes known later ---- */

static bool recorder_write(struct recorder *recorder, const void *record, GError **error)
{
	return recording_writer_record(recorder->writer, record, error);
}

#define PROLOGUE_RECORD_BYTES 8192u /* a path (PATH_MAX) and the fields around it */

/*
 * perf finds a kernel's symbols by a mapping named after the symbol with its page offset as the address (Linux,
 * tools/perf/util/synthetic-events.c, perf_event__synthesize_kernel_mmap).
 */
bool recorder_write_kernel(struct recorder *recorder, uint64_t time_ns, GError **error)
{
	struct code_range kernel;

	kernel_code_range(recorder->kernel.image, recorder->kernel.symtab, &kernel);
	const struct record_id id = {
		.time_ns = time_ns,
		.id = recorder->events[0].n_ids != 0 ? recorder->events[0].ids[0] : 0,
	};
	g_autofree char *name = g_strdup_printf("[kernel.kallsyms]%s", kernel.name);
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];
	const struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_KERNEL,
		.pid = UINT32_MAX,
		.start = kernel.start,
		.bytes = kernel.bytes,
		.page_offset = kernel.start,
		.file_name = {name},
	};

	if (record_mmap_encode(&mapping, &id, record, sizeof(record)) == 0)
		return true;
	return recorder_write(recorder, record, error);
}

/* So that other readers of perf.data have the name, too. */
static bool recorder_write_real_mode(struct recorder *recorder, GError **error)
{
	const struct record_id id = {.id = recorder->events[0].n_ids != 0 ? recorder->events[0].ids[0] : 0};
	const struct record_ksymbol symbol = {VPROF_REAL_MODE, UINT32_MAX, VPROF_REAL_MODE_NAME};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	record_ksymbol_encode(&symbol, &id, record, sizeof(record));
	return recorder_write(recorder, record, error);
}

static bool recorder_write_comm(struct recorder *recorder, uint32_t pid, const char *comm, GError **error)
{
	const struct record_id id = {
		.pid = pid,
		.tid = pid,
		.id = recorder->events[0].n_ids != 0 ? recorder->events[0].ids[0] : 0,
	};
	const struct record_comm said = {.pid = pid, .tid = pid, .comm = {comm}};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	if (record_comm_encode(&said, &id, record, sizeof(record)) == 0)
		return true;
	return recorder_write(recorder, record, error);
}

/* Names for the tasks that the engine does not name: the whole guest, or its idle tasks and unknown ones. */
static bool recorder_write_comms(struct recorder *recorder, GError **error)
{
	if (!json_is_true(json_object_get(recorder->session, "tasks")))
		return recorder_write_comm(recorder, 0, "guest", error);
	return recorder_write_comm(recorder, 0, "swapper", error) &&
	       recorder_write_comm(recorder, VPROF_PID_UNKNOWN, "[unknown]", error);
}

/* The user code of a freestanding image is in its own file, where perf looks for it. */
static bool recorder_write_user(struct recorder *recorder, GError **error)
{
	const struct record_id id = {.id = recorder->events[0].n_ids != 0 ? recorder->events[0].ids[0] : 0};
	const struct image *image = recorder->kernel.image;
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		const struct record_mmap mapping = {
			.mode = PERF_RECORD_MISC_USER,
			.start = segments[i].gva,
			.bytes = segments[i].memory_bytes,
			.page_offset = segments[i].file_offset,
			.file_name = {member_text(recorder->config.guest, "kernel")},
		};

		if (!segment_is_user_code(image, &segments[i]) ||
		    record_mmap_encode(&mapping, &id, record, sizeof(record)) == 0)
			continue;
		if (!recorder_write(recorder, record, error))
			return false;
	}
	return true;
}

bool recorder_open(struct recorder *recorder, const char *path, GError **error)
{
	recorder->writer = recording_writer_open(path, recorder->events, recorder->n_events, error);
	if (!recorder->writer)
		return false;
	recorder->path = g_strdup(path);
	return recorder_write_real_mode(recorder, error) &&
	       (!recorder->kernel.image ||
	        (recorder_write_kernel(recorder, 0, error) && recorder_write_user(recorder, error))) &&
	       recorder_write_comms(recorder, error) && recording_writer_round(recorder->writer, error) &&
	       (!recorder->source->start || recorder->source->start(recorder, error));
}

static struct record_id id_now(const struct recorder *recorder, uint32_t pid, uint32_t tid)
{
	return (struct record_id){
		.pid = pid,
		.tid = tid,
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.id = recorder->events[0].n_ids != 0 ? recorder->events[0].ids[0] : 0,
	};
}

/* Whether the recording already has this mapping at this moment. */
static bool has_mapping(struct recorder *recorder, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
                        const char *path)
{
	const struct mapping *there =
		names_mapping(recorder->names, PROFILE_USER, pid, start, clock_ns(CLOCK_MONOTONIC));

	if (!there)
		return strcmp(path, VPROF_UNMAPPED) == 0;
	return there->start == start && there->end - there->start == bytes && there->file_offset == offset &&
	       strcmp(there->file->name, path) == 0;
}

bool recorder_mapping(struct recorder *recorder, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
                      const char *path)
{
	const struct record_id id = id_now(recorder, pid, pid);
	const struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_USER,
		.pid = pid,
		.tid = pid,
		.start = start,
		.bytes = bytes,
		.page_offset = offset,
		.file_name = {path},
	};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];
	size_t n;

	if (has_mapping(recorder, pid, start, bytes, offset, path))
		return false;
	n = record_mmap_encode(&mapping, &id, record, sizeof(record));
	if (n == 0 || !recorder_write(recorder, record, NULL))
		return true;
	names_take(recorder->names, (const void *)record, n, recorder->events[0].attr.sample_type);
	recorder->told_mappings = true;
	return true;
}

void recorder_comm(struct recorder *recorder, uint32_t pid, uint32_t tid, const char *comm)
{
	const struct record_id id = id_now(recorder, pid, tid);
	const struct record_comm said = {.pid = pid, .tid = tid, .comm = {comm}};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	if (record_comm_encode(&said, &id, record, sizeof(record)) != 0)
		recorder_write(recorder, record, NULL);
}

/* ---- its end ---- */

#define NAMED_MAX 8u

/* Files without tables: callers of their functions are found by frame pointers only. */
static void missing_tables(const struct recorder *recorder, json_t *missing)
{
	json_t *tables = recorder->tables ? recorder_tables_json(recorder->tables) : NULL;
	const json_t *without = json_object_get(tables, "without"), *name;
	g_autoptr(GString) list = g_string_new(NULL);
	size_t i, n = json_array_size(without);

	json_array_foreach(without, i, name)
		if (i < NAMED_MAX)
			g_string_append_printf(list, "%s%s", i != 0 ? ", " : "", json_string_value(name));
	if (n > NAMED_MAX)
		g_string_append_printf(list, " and %zu more", n - NAMED_MAX);
	if (n != 0)
		json_array_append_new(
			missing, json_sprintf("unwind tables of %s: --symfs names a folder with copies", list->str));
	json_decref(tables);
}

/* Sentences about what could not be found out about the guest. */
static json_t *recorder_missing(const struct recorder *recorder)
{
	static const struct {
		const char *what, *member;
	} whys[] = {{"tasks", "tasks-why"},     {"mapped files", "mappings-why"}, {"cgroups", "cgroups-why"},
	            {"modules", "modules-why"}, {"ORC", "unwinder-why"},          {"route", "route-why"},
	            {"waits", "waits-why"}};
	json_t *missing = json_array();

	for (size_t i = 0; i < G_N_ELEMENTS(whys); i++) {
		const char *why = member_text(recorder->session, whys[i].member);

		if (why)
			json_array_append_new(missing, json_sprintf("%s: %s", whys[i].what, why));
	}
	missing_tables(recorder, missing);
	if (recorder->told_mappings)
		json_array_append_new(missing, json_string("mapped files: those that the agent in the guest has told"));
	return missing;
}

static int64_t realtime_offset_ns(void)
{
	return g_get_real_time() * 1000 - g_get_monotonic_time() * 1000;
}

/* VPROF_FEATURE_DESCRIPTION. */
static char *recorder_description(const struct recorder *recorder, const struct recorder_end *end)
{
	g_autofree char *cpu = processor_model();
	json_t *description = json_pack("{s:i, s:o, s:I}", "version", 1, "host-cpu", text_json(cpu),
	                                "realtime-offset-ns", (json_int_t)realtime_offset_ns());
	char *text;

	member_set(description, "guest", end->guest);
	member_set(description, "events", json_object_get(recorder->session, "events"));
	member_set(description, "rate", recorder->rate);
	member_set(description, "unwinder", json_object_get(recorder->session, "unwinder"));
	if (recorder->tables)
		json_object_set_new(description, "unwind-tables", recorder_tables_json(recorder->tables));
	member_set(description, "statistics", recorder->statistics);
	if (recorder->time_from && recorder->time_to)
		json_object_set_new(description, "time", recorder_time(recorder));
	member_set(description, "end", end->end);
	member_set(description, "phases", recorder->phases);
	member_set(description, "marks", recorder->marks);
	member_set(description, "exec", end->exec);
	json_object_set_new(description, "missing", recorder_missing(recorder));
	text = json_dumps(description, JSON_COMPACT);
	json_decref(description);
	return text;
}

void recorder_kernel_hits(const struct recorder *recorder, GArray *symbols)
{
	const guint before = recorder->frames_before->len;

	symbols_hit(recorder->frames, recorder->kernel.symtab, symbols);
	if (before > 0)
		symbols_hit(g_ptr_array_index(recorder->frames_before, before - 1), recorder->kernel.symtab, symbols);
}

/* The symbols of all kernels. */
static GArray *recorder_symbols(const struct recorder *recorder)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	g_array_append_vals(symbols, recorder->kernel_symbols->data, recorder->kernel_symbols->len);
	recorder_kernel_hits(recorder, symbols);
	if (recorder->frames_before->len > 0)
		symbols_order_certain(symbols);
	else
		symbols_order(symbols);
	return symbols;
}

static const struct histogram *frames_of(const struct recorder *recorder, guint i)
{
	return i < recorder->frames_before->len ? g_ptr_array_index(recorder->frames_before, i) : recorder->frames;
}

static GArray *recorder_user_symbols(const struct recorder *recorder, struct user_symbols *user)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; i <= recorder->frames_before->len; i++)
		user_symbols_hit(frames_of(recorder, i), user, symbols);
	if (recorder->guest_symbols)
		g_array_append_vals(symbols, recorder->guest_symbols->data, recorder->guest_symbols->len);
	symbols_order(symbols);
	return symbols;
}

static GArray *recorder_host_symbols(const struct recorder *recorder)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; recorder->host && i <= recorder->frames_before->len; i++)
		host_symbols_hit(frames_of(recorder, i), recorder->host, symbols);
	symbols_order_addresses(symbols);
	return symbols;
}

/* getopt_long has changed the order of argv, so the words come from /proc. */
static char **command_line(void)
{
	g_autofree char *bytes = NULL;
	GPtrArray *words = g_ptr_array_new();
	gsize n;

	if (g_file_get_contents("/proc/self/cmdline", &bytes, &n, NULL))
		for (const char *word = bytes; word < bytes + n; word += strlen(word) + 1)
			g_ptr_array_add(words, g_strdup(word));
	g_ptr_array_add(words, NULL);
	return (char **)g_ptr_array_free(words, FALSE);
}

static bool write_end(struct recorder *recorder, const struct recorder_end *end, struct user_symbols *user,
                      GError **error)
{
	g_auto(GStrv) words = command_line();
	struct recording_features features = {
		.hostname = member_text(end->guest, "name"),
		.release = member_text(end->guest, "release"),
		.arch = arch_here(),
		.version = VPROF_VERSION,
		.cmdline = (const char *const *)words,
		.vcpus = (unsigned)member_number(end->guest, "vcpus", 1),
		.memory_bytes = member_number(end->guest, "memory-bytes", 0),
		.kernel_path = member_text(end->guest, "kernel"),
	};
	if (recorder->tables)
		recorder_tables_give(recorder->tables, user);
	g_autoptr(GArray) symbols = recorder_symbols(recorder);
	g_autoptr(GArray) user_symbols = recorder_user_symbols(recorder, user);
	g_autoptr(GArray) host_symbols = recorder_host_symbols(recorder);
	char *description = recorder_description(recorder, end);
	bool finished;

	features.description = description;
	if (recorder->kernel.image)
		features.kernel_build_id = image_build_id(recorder->kernel.image, &features.kernel_build_id_bytes);
	features.symbols = (const void *)symbols->data;
	features.n_symbols = symbols->len;
	features.user_symbols = (const void *)user_symbols->data;
	features.n_user_symbols = user_symbols->len;
	features.host_symbols = (const void *)host_symbols->data;
	features.n_host_symbols = host_symbols->len;
	finished = recording_writer_finish(recorder->writer, &features, error);
	free(description);
	return finished;
}

struct user_symbol_sources recorder_sources(const struct recorder *recorder)
{
	static const struct symbol_options none;

	return symbol_options_sources(recorder->config.symbols ? recorder->config.symbols : &none,
	                              recorder->config.initrd, arch_here(), false);
}

bool recorder_finish(struct recorder *recorder, const struct recorder_end *end, GError **error)
{
	const struct user_symbol_sources sources = recorder_sources(recorder);
	struct user_symbols *user = user_symbols_new(&sources);
	const bool finished = recorder_drain(recorder, error) && write_end(recorder, end, user, error);
	const GPtrArray *warnings = user_symbols_warnings(user);

	for (guint i = 0; i < warnings->len; i++)
		warn("%s", (const char *)warnings->pdata[i]);
	user_symbols_free(user);
	return finished;
}
