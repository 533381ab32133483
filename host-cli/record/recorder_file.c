// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file of a recording: what is written besides the rings' records, and its end with the symbols of what was
 * sampled and the description of the run.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/record/clock.h"
#include "lib/record/processor.h"
#include "lib/record/record.h"
#include "record/recorder_priv.h"
#include "record/recorder_symbols.h"
#include "ui/text.h"

/* ---- its beginning, and what becomes known later ---- */

/* Devices and pipes are not renamed. */
static bool file_set_aside(const char *path, GError **error)
{
	g_autofree char *old = g_strconcat(path, ".old", NULL);
	struct stat status;

	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || rename(path, old) == 0)
		return true;
	g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_FILE, "cannot rename %s to %s: %s", path, old,
	            g_strerror(errno));
	return false;
}

static bool capture_write(struct capture *capture, const void *record, GError **error)
{
	return recording_writer_record(capture->writer, record, error);
}

#define PROLOGUE_RECORD_BYTES 8192u /* a path (PATH_MAX) and the fields around it */

/*
 * perf finds a kernel's symbols by a mapping named after the symbol with its page offset as the address (Linux,
 * tools/perf/util/synthetic-events.c, perf_event__synthesize_kernel_mmap).
 */
bool capture_write_kernel(struct capture *capture, const struct image *image, const struct symtab *symtab,
                          uint64_t time_ns, GError **error)
{
	struct code_range kernel;

	kernel_code_range(image, symtab, &kernel);
	const struct record_id id = {
		.time_ns = time_ns,
		.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0,
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
	return capture_write(capture, record, error);
}

/* So that other readers of perf.data have the name, too. */
static bool capture_write_real_mode(struct capture *capture, GError **error)
{
	const struct record_id id = {.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0};
	const struct record_ksymbol symbol = {VPROF_REAL_MODE, UINT32_MAX, VPROF_REAL_MODE_NAME};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	record_ksymbol_encode(&symbol, &id, record, sizeof(record));
	return capture_write(capture, record, error);
}

static bool capture_write_comm(struct capture *capture, uint32_t pid, const char *comm, GError **error)
{
	const struct record_id id = {
		.pid = pid,
		.tid = pid,
		.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0,
	};
	const struct record_comm said = {.pid = pid, .tid = pid, .comm = {comm}};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	if (record_comm_encode(&said, &id, record, sizeof(record)) == 0)
		return true;
	return capture_write(capture, record, error);
}

/* Names for the tasks that the engine does not name: the whole guest, or its idle tasks and unknown ones. */
static bool capture_write_comms(struct capture *capture, GError **error)
{
	if (!json_is_true(json_object_get(capture->session, "tasks")))
		return capture_write_comm(capture, 0, "guest", error);
	return capture_write_comm(capture, 0, "swapper", error) &&
	       capture_write_comm(capture, VPROF_PID_UNKNOWN, "[unknown]", error);
}

/* The user code of a freestanding image is in its own file, where perf looks for it. */
static bool capture_write_user(struct capture *capture, const struct image *image, const char *path, GError **error)
{
	const struct record_id id = {.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		const struct record_mmap mapping = {
			.mode = PERF_RECORD_MISC_USER,
			.start = segments[i].gva,
			.bytes = segments[i].memory_bytes,
			.page_offset = segments[i].file_offset,
			.file_name = {path},
		};

		if (!segment_is_user_code(image, &segments[i]) ||
		    record_mmap_encode(&mapping, &id, record, sizeof(record)) == 0)
			continue;
		if (!capture_write(capture, record, error))
			return false;
	}
	return true;
}

bool capture_open_file(struct capture *capture, const char *path, const struct image *image,
                       const struct symtab *symtab, const char *kernel_path, GError **error)
{
	if (!file_set_aside(path, error))
		return false;
	capture->writer = recording_writer_open(path, capture->events, capture->n_events, error);
	if (!capture->writer)
		return false;
	return capture_write_real_mode(capture, error) &&
	       (!image || (capture_write_kernel(capture, image, symtab, 0, error) &&
	                   capture_write_user(capture, image, kernel_path, error))) &&
	       capture_write_comms(capture, error) && recording_writer_round(capture->writer, error);
}

static struct record_id id_now(const struct capture *capture, uint32_t pid, uint32_t tid)
{
	return (struct record_id){
		.pid = pid,
		.tid = tid,
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0,
	};
}

/* Whether the recording already has this mapping at this moment. */
static bool has_mapping(struct capture *capture, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
                        const char *path)
{
	const struct mapping *there =
		names_mapping(capture->names, PROFILE_USER, pid, start, clock_ns(CLOCK_MONOTONIC));

	if (!there)
		return strcmp(path, VPROF_UNMAPPED) == 0;
	return there->start == start && there->end - there->start == bytes && there->file_offset == offset &&
	       strcmp(there->file->name, path) == 0;
}

bool capture_mapping(struct capture *capture, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t offset,
                     const char *path)
{
	const struct record_id id = id_now(capture, pid, pid);
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

	if (has_mapping(capture, pid, start, bytes, offset, path))
		return false;
	n = record_mmap_encode(&mapping, &id, record, sizeof(record));
	if (n == 0 || !capture_write(capture, record, NULL))
		return true;
	names_take(capture->names, (const void *)record, n, capture->events[0].attr.sample_type);
	capture->told_mappings = true;
	return true;
}

void capture_comm(struct capture *capture, uint32_t pid, uint32_t tid, const char *comm)
{
	const struct record_id id = id_now(capture, pid, tid);
	const struct record_comm said = {.pid = pid, .tid = tid, .comm = {comm}};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	if (record_comm_encode(&said, &id, record, sizeof(record)) != 0)
		capture_write(capture, record, NULL);
}

/* ---- its end ---- */

#define NAMED_MAX 8u

/* Files whose functions have callers only where frame pointers lead to them. */
static void missing_tables(const struct capture *capture, json_t *missing)
{
	json_t *tables = capture->tables ? capture_tables_json(capture->tables) : NULL;
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
static json_t *capture_missing(const struct capture *capture)
{
	static const struct {
		const char *what, *member;
	} whys[] = {{"tasks", "tasks-why"},     {"mapped files", "mappings-why"}, {"cgroups", "cgroups-why"},
	            {"modules", "modules-why"}, {"ORC", "unwinder-why"},          {"route", "route-why"}};
	json_t *missing = json_array();

	for (size_t i = 0; i < G_N_ELEMENTS(whys); i++) {
		const char *why = member_text(capture->session, whys[i].member);

		if (why)
			json_array_append_new(missing, json_sprintf("%s: %s", whys[i].what, why));
	}
	missing_tables(capture, missing);
	if (capture->told_mappings)
		json_array_append_new(missing, json_string("mapped files: those that the agent in the guest has told"));
	return missing;
}

static int64_t realtime_offset_ns(void)
{
	return g_get_real_time() * 1000 - g_get_monotonic_time() * 1000;
}

/* VPROF_FEATURE_DESCRIPTION. */
static char *capture_description(const struct capture *capture, const struct capture_summary *summary)
{
	g_autofree char *cpu = processor_model();
	json_t *description = json_pack("{s:i, s:o, s:I}", "version", 1, "host-cpu", text_json(cpu),
	                                "realtime-offset-ns", (json_int_t)realtime_offset_ns());
	char *text;

	member_set(description, "guest", summary->guest);
	member_set(description, "events", json_object_get(capture->session, "events"));
	member_set(description, "rate", capture->rate);
	member_set(description, "unwinder", json_object_get(capture->session, "unwinder"));
	if (capture->tables)
		json_object_set_new(description, "unwind-tables", capture_tables_json(capture->tables));
	member_set(description, "statistics", summary->statistics);
	if (capture->time_from && capture->time_to)
		json_object_set_new(description, "time", capture_time(capture));
	member_set(description, "end", summary->end);
	member_set(description, "phases", capture->phases);
	member_set(description, "marks", capture->marks);
	member_set(description, "exec", summary->exec);
	json_object_set_new(description, "missing", capture_missing(capture));
	text = json_dumps(description, JSON_COMPACT);
	json_decref(description);
	return text;
}

static const struct histogram *frames_of(const struct capture *capture, guint i)
{
	return i < capture->kernels->len ? g_array_index(capture->kernels, struct kernel_before, i).frames
	                                 : capture->frames;
}

/* The symbols of all kernels; `symtab` is the last. Samples of a kernel's boot were counted for the one before. */
static GArray *capture_symbols(const struct capture *capture, const struct symtab *symtab)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; i <= capture->kernels->len; i++) {
		const struct symtab *own = i < capture->kernels->len
		                                   ? g_array_index(capture->kernels, struct kernel_before, i).symtab
		                                   : symtab;

		symbols_hit(frames_of(capture, i), own, symbols);
		if (i > 0)
			symbols_hit(frames_of(capture, i - 1), own, symbols);
	}
	if (capture->kernels->len > 0)
		symbols_order_certain(symbols);
	else
		symbols_order(symbols);
	return symbols;
}

static GArray *capture_user_symbols(const struct capture *capture, struct user_symbols *user)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; i <= capture->kernels->len; i++)
		user_symbols_hit(frames_of(capture, i), user, symbols);
	if (capture->guest_symbols)
		g_array_append_vals(symbols, capture->guest_symbols->data, capture->guest_symbols->len);
	symbols_order(symbols);
	return symbols;
}

static GArray *capture_host_symbols(const struct capture *capture, struct host_symbols *host)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; host && i <= capture->kernels->len; i++)
		host_symbols_hit(frames_of(capture, i), host, symbols);
	symbols_order_addresses(symbols);
	return symbols;
}

bool capture_finish(struct capture *capture, const struct capture_summary *summary, const struct image *image,
                    const struct symtab *symtab, const char *const *command_line, GError **error)
{
	struct recording_features features = {
		.hostname = member_text(summary->guest, "name"),
		.release = member_text(summary->guest, "release"),
		.arch = arch_here(),
		.version = VPROF_VERSION,
		.cmdline = command_line,
		.vcpus = (unsigned)member_number(summary->guest, "vcpus", 1),
		.memory_bytes = member_number(summary->guest, "memory-bytes", 0),
		.kernel_path = member_text(summary->guest, "kernel"),
	};
	if (capture->tables)
		capture_tables_give(capture->tables, summary->user_symbols);
	g_autoptr(GArray) symbols = capture_symbols(capture, symtab);
	g_autoptr(GArray) user_symbols = capture_user_symbols(capture, summary->user_symbols);
	g_autoptr(GArray) host_symbols = capture_host_symbols(capture, summary->host_symbols);
	char *description = capture_description(capture, summary);
	bool finished;

	features.description = description;
	if (image)
		features.kernel_build_id = image_build_id(image, &features.kernel_build_id_bytes);
	features.symbols = (const void *)symbols->data;
	features.n_symbols = symbols->len;
	features.user_symbols = (const void *)user_symbols->data;
	features.n_user_symbols = user_symbols->len;
	features.host_symbols = (const void *)host_symbols->data;
	features.n_host_symbols = host_symbols->len;
	finished = recording_writer_finish(capture->writer, &features, error);
	free(description);
	return finished;
}
