// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_source.h"

#include <string.h>
#include <vprof/control.h>
#include <vprof/probe.h>

#include "engine/engine_find.h"
#include "engine/engine_process.h"
#include "engine/session_events.h"
#include "lib/probe_name/probe_name.h"
#include "lib/record/reader.h"
#include "lib/record/ring_reader.h"
#include "trace/probe_lines.h"
#include "trace/trace_filter.h"
#include "trace/trace_program.h"
#include "ui/text.h"

#define COMMS_MAX 65536u /* names that are kept; beyond that, all are dropped and collected anew */

struct trace_source {
	struct client *client;
	GPtrArray *probes;  /* of struct trace_probe */
	GPtrArray *readers; /* of struct ring_reader, one for each vCPU */
	GHashTable *comms;  /* tid to name */
	struct trace_names *names;
	struct trace_processes processes;
	bool tasks; /* the engine tells them apart */
	bool ended;
};

struct trace_source *trace_source_open(const char *engine, const char *symfs, GError **error)
{
	struct client *client = engine_find(engine, error);
	struct trace_source *source;

	if (!client)
		return NULL;
	source = g_new0(struct trace_source, 1);
	source->client = client;
	source->probes = g_ptr_array_new_with_free_func((GDestroyNotify)trace_probe_free);
	source->readers = g_ptr_array_new_with_free_func((GDestroyNotify)ring_reader_free);
	source->comms = g_hash_table_new_full(NULL, NULL, NULL, NULL);
	source->names = trace_names_new(client, symfs);
	return source;
}

void trace_source_close(struct trace_source *source)
{
	if (!source)
		return;
	trace_names_free(source->names);
	g_hash_table_unref(source->comms);
	g_ptr_array_unref(source->readers);
	g_ptr_array_unref(source->probes);
	client_free(source->client);
	g_free(source);
}

static void set_texts(json_t *arguments, const char *name, char **texts)
{
	json_t *list = json_array();

	for (; texts && *texts; texts++)
		json_array_append_new(list, text_json(*texts));
	if (json_array_size(list) > 0)
		json_object_set(arguments, name, list);
	json_decref(list);
}

void trace_source_choose(struct trace_source *source, const struct trace_processes *processes)
{
	source->processes = *processes;
}

/* What the engine does not know of a function of a program. */
static bool set_program(struct trace_source *source, const char *probe, json_t *arguments, GError **error)
{
	const struct trace_processes *processes = &source->processes;

	if (!probe_name_is_of_program(probe))
		return true;
	if (processes->pid != 0)
		json_object_set_new(arguments, "pid", json_integer((json_int_t)processes->pid));
	if (processes->comm)
		json_object_set_new(arguments, "comm", text_json(processes->comm));
	if (processes->cgroup)
		json_object_set_new(arguments, "cgroup", text_json(processes->cgroup));
	return trace_program_fill(trace_names_copies(source->names), probe, arguments, error);
}

bool trace_source_add(struct trace_source *source, const char *probe, const struct trace_options *options,
                      GError **error)
{
	json_t *arguments = json_pack("{s:o, s:b}", "probe", text_json(probe), "stack", options->stack);
	json_t *answer;

	if (options->breakpoints)
		json_object_set_new(arguments, "breakpoint", text_json(options->breakpoints));
	set_texts(arguments, "registers", options->registers);
	set_texts(arguments, "fields", options->paths);
	if (!set_program(source, probe, arguments, error)) {
		json_decref(arguments);
		return false;
	}
	answer = engine_ask(source->client, "probe-add", arguments, error);
	if (!answer)
		return false;
	g_ptr_array_add(source->probes, trace_probe_new(answer));
	json_decref(answer);
	return true;
}

json_t *trace_list_probes(struct client *client, const char *pattern, json_t *names, json_t *bare, GError **error)
{
	const bool is_line = pattern && probe_name_line(pattern);
	uint64_t from = 0;

	if (is_line && !probe_lines_list(client, pattern, names, error))
		return NULL;
	for (;;) {
		json_t *arguments = json_pack("{s:I}", "from", (json_int_t)from), *answer, *providers;
		bool more;

		if (pattern && !is_line)
			json_object_set_new(arguments, "match", text_json(pattern));
		answer = engine_ask(client, "probe-list", arguments, error);
		if (!answer)
			return NULL;
		json_array_extend(names, json_object_get(answer, "probes"));
		json_array_extend(bare, json_object_get(answer, "without-arguments"));
		more = member_number(answer, "next", 0) > from;
		from = member_number(answer, "next", 0);
		providers = json_incref(json_object_get(answer, "providers"));
		json_decref(answer);
		if (!more)
			return providers;
		json_decref(providers);
	}
}

/* Those of programs are in copies of them, all others in the engine. */
static bool list_matching(struct trace_source *source, const char *pattern, json_t *names, GError **error)
{
	if (probe_name_is_of_program(pattern))
		return trace_program_list(trace_names_copies(source->names), pattern, names, error);
	json_t *bare = json_array(), *providers = trace_list_probes(source->client, pattern, names, bare, error);
	const bool done = providers != NULL;

	json_decref(providers);
	json_decref(bare);
	return done;
}

json_t *trace_source_matching(struct trace_source *source, const char *pattern, GError **error)
{
	json_t *names = json_array();
	const bool listed = list_matching(source, pattern, names, error);
	const size_t n = json_array_size(names);
	const bool done = listed && n > 0 && n <= VPROF_PROBES_MAX;

	if (listed && n == 0)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE, "%s matches nothing that can be probed", pattern);
	else if (listed && !done)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE, "%s matches %zu, and there can be %u probes",
		            pattern, n, VPROF_PROBES_MAX);
	if (done)
		return names;
	json_decref(names);
	return NULL;
}

/*
 * The names that could not be patched, and those of programs, of which all processes would share the patches (new
 * reference); steals `names`.
 */
static json_t *patch_all(struct trace_source *source, json_t *names, const struct trace_options *options)
{
	struct trace_options patch = *options;
	json_t *others = json_array(), *name;
	size_t i;

	patch.breakpoints = TRACE_PATCH;
	json_array_foreach(names, i, name)
		if (probe_name_is_of_program(json_string_value(name)) ||
		    !trace_source_add(source, json_string_value(name), &patch, NULL))
			json_array_append(others, name);
	json_decref(names);
	return others;
}

bool trace_source_add_all(struct trace_source *source, const char *pattern, const struct trace_options *options,
                          unsigned *left_out, char **why, GError **error)
{
	json_t *names = trace_source_matching(source, pattern, error), *name;
	const size_t n = json_array_size(names);
	size_t i;

	*left_out = 0;
	*why = NULL;
	if (!options->breakpoints && n > TRACE_PROBES_SURE)
		names = patch_all(source, names, options);
	json_array_foreach(names, i, name) {
		g_autoptr(GError) failure = NULL;

		if (trace_source_add(source, json_string_value(name), options, &failure))
			continue;
		if ((*left_out)++ == 0)
			*why = g_strdup(failure->message);
	}
	const bool none = names && *left_out == n;

	if (none)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE, "%s", *why);
	if (none)
		g_clear_pointer(why, g_free);
	json_decref(names);
	return names && !none;
}

size_t trace_source_count(const struct trace_source *source)
{
	return source->probes->len;
}

const struct trace_probe *trace_source_probe(const struct trace_source *source, size_t i)
{
	return g_ptr_array_index(source->probes, i);
}

json_t *trace_source_ask(struct trace_source *source, const char *method, json_t *arguments, GError **error)
{
	return engine_ask(source->client, method, arguments, error);
}

unsigned trace_source_patches(const struct trace_source *source)
{
	unsigned n = 0;

	for (guint i = 0; i < source->probes->len; i++)
		n += ((const struct trace_probe *)g_ptr_array_index(source->probes, i))->is_patch;
	return n;
}

bool trace_source_has_field(const struct trace_source *source, const char *field)
{
	bool found = trace_field_is_common(field);

	for (guint i = 0; i < source->probes->len && !found; i++)
		found = trace_probe_has(g_ptr_array_index(source->probes, i), field);
	return found;
}

bool trace_source_record(struct trace_source *source, GError **error)
{
	json_t *answer = engine_ask(source->client, "probe-record", json_pack("{s:b}", "on", true), error);

	if (!answer)
		return false;
	source->tasks = json_is_true(json_object_get(answer, "tasks"));
	json_decref(answer);
	return session_rings_get(source->client, "probe-rings", NULL, source->readers, NULL, error);
}

/* ---- events ---- */

static const struct trace_probe *find_probe(const struct trace_source *source, uint64_t id)
{
	for (guint i = 0; i < source->probes->len; i++) {
		const struct trace_probe *probe = g_ptr_array_index(source->probes, i);

		if (probe->id == id)
			return probe;
	}
	return NULL;
}

/* Interned, since events refer to it; a guest cannot make vprof keep more than COMMS_MAX names. */
static void learn_comm(struct trace_source *source, const struct perf_event_header *record, size_t bytes)
{
	struct record_comm comm;
	g_autofree char *clean = NULL;

	if (!record_comm_decode(record, bytes, &comm))
		return;
	if (g_hash_table_size(source->comms) >= COMMS_MAX)
		g_hash_table_remove_all(source->comms);
	clean = untrusted_printable(comm.comm);
	g_hash_table_insert(source->comms, GUINT_TO_POINTER(comm.tid), (char *)g_intern_string(clean));
}

static const char *find_comm(const struct trace_source *source, uint32_t tid)
{
	const char *comm = g_hash_table_lookup(source->comms, GUINT_TO_POINTER(tid));

	if (comm)
		return comm;
	if (!source->tasks)
		return "-";
	return tid == 0 ? "swapper" : "?";
}

static void take_record(struct trace_source *source, const struct perf_event_header *record, size_t bytes,
                        GArray *events)
{
	struct trace_event event = {.bytes = NULL};

	if (record->type != PERF_RECORD_SAMPLE) {
		learn_comm(source, record, bytes);
		trace_names_take(source->names, record, bytes);
		return;
	}
	event.bytes = g_memdup2(record, bytes);
	if (record_sample_decode((const struct perf_event_header *)(const void *)event.bytes, bytes,
	                         VPROF_PROBE_SAMPLE_TYPE, &event.sample))
		event.probe = find_probe(source, event.sample.id);
	if (!event.probe) {
		trace_event_clear(&event);
		return;
	}
	event.comm = find_comm(source, event.sample.tid);
	g_array_append_val(events, event);
}

static bool drain_ring(struct trace_source *source, struct ring_reader *reader, GArray *events, GError **error)
{
	const struct perf_event_header *record;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)))
		take_record(source, record, bytes, events);
	ring_reader_release(reader);
	if (!ring_reader_corrupt(reader))
		return true;
	g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT,
	            "a ring of the engine is damaged; stop tracing and start again");
	return false;
}

static gint compare_times(gconstpointer a, gconstpointer b)
{
	const struct trace_event *first = a, *second = b;

	return (first->sample.time_ns > second->sample.time_ns) - (first->sample.time_ns < second->sample.time_ns);
}

/* True once the guest or its engine has ended; other events are ignored. */
static bool wait_for_end(struct trace_source *source, unsigned timeout_ms)
{
	g_autoptr(GError) gone = NULL;
	json_t *event = client_next_event(source->client, timeout_ms, &gone);
	bool ended = gone || g_strcmp0(member_text(event, "event"), VPROF_EVENT_GUEST_ENDED) == 0;

	json_decref(event);
	return ended;
}

GArray *trace_source_read(struct trace_source *source, unsigned timeout_ms, GError **error)
{
	GArray *events = g_array_new(FALSE, FALSE, sizeof(struct trace_event));

	g_array_set_clear_func(events, (GDestroyNotify)trace_event_clear);
	source->ended = source->ended || wait_for_end(source, timeout_ms);
	for (guint i = 0; i < source->readers->len; i++) {
		if (!drain_ring(source, g_ptr_array_index(source->readers, i), events, error)) {
			g_array_unref(events);
			return NULL;
		}
	}
	g_array_sort(events, compare_times);
	return events;
}

bool trace_source_ended(const struct trace_source *source)
{
	return source->ended;
}

bool trace_source_stop(struct trace_source *source, GError **error)
{
	json_t *answer = engine_ask(source->client, "probe-record", json_pack("{s:b}", "on", false), error);

	json_decref(answer);
	return answer != NULL;
}

json_t *trace_source_statistics(struct trace_source *source)
{
	json_t *state = engine_ask(source->client, "query-probes", NULL, NULL), *part = json_incref(state);
	uint64_t from = 0, next;

	/* The answer may have a part of the probes. */
	while ((next = member_number(part, "next", 0)) > from) {
		from = next;
		json_decref(part);
		part = engine_ask(source->client, "query-probes", json_pack("{s:I}", "from", (json_int_t)from), NULL);
		json_array_extend(json_object_get(state, "probes"), json_object_get(part, "probes"));
	}
	json_decref(part);
	return state;
}

struct trace_names *trace_source_names(struct trace_source *source)
{
	return source->names;
}
