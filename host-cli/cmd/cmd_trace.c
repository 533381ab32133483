// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "engine/engine_process.h"
#include "lib/probe_name/probe_name.h"
#include "lib/record/output.h"
#include "trace/trace_event.h"
#include "trace/trace_filter.h"
#include "trace/trace_query.h"
#include "trace/trace_script.h"
#include "trace/trace_source.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/text.h"

#define POLL_MS 50u
#define EVENTS_MAX UINT64_C(1000000000000)

struct trace_values {
	char **probes, **filters, **counts, **hists;
	char *registers, *fields, *breakpoints, *symfs, *script, *output, *comm, *cgroup;
	uint64_t events, duration_s, map_keys, pid; /* 0: not given */
	gboolean stack, json;
};

static const struct option_row options[] = {
	{"probe", OPTION_TEXTS, offsetof(struct trace_values, probes),
         "what to trace, or a script, as 'PROBE /PREDICATE/ { STATEMENTS }'; may be repeated", "PROBE", "@probes"},
	{"script", OPTION_FILE, offsetof(struct trace_values, script),
         "file with a script; further arguments are its $1, $2 and so on", "FILE"},
	{"registers", OPTION_TEXT, offsetof(struct trace_values, registers),
         "registers to print with each event, e.g. rip,rax", "LIST"},
	{"fields", OPTION_TEXT, offsetof(struct trace_values, fields),
         "members of what the arguments point to, e.g. prev->pid,str(prev->comm)", "LIST"},
	{"stack", OPTION_FLAG, offsetof(struct trace_values, stack), "also print call chains", NULL},
	{"symfs", OPTION_FILE, offsetof(struct trace_values, symfs),
         "folder with the guest's programs and libraries, for names in call chains", "FOLDER"},
	{"pid", OPTION_NUMBER, offsetof(struct trace_values, pid), "only events of this process of the guest", "PID",
         .min = 1, .max = UINT32_MAX},
	{"comm", OPTION_TEXT, offsetof(struct trace_values, comm),
         "only events of tasks with this name, which may have * and ?", "NAME"},
	{"cgroup", OPTION_TEXT, offsetof(struct trace_values, cgroup),
         "probes of programs: only in processes in this cgroup", "PATH"},
	{"breakpoints", OPTION_TEXT, offsetof(struct trace_values, breakpoints),
         "how to probe functions: processor (one of its few registers), patch (INT3 or BRK; of a program, in its file, for all processes) or any",
         "MEANS", "processor patch any"},
	{"filter", OPTION_TEXTS, offsetof(struct trace_values, filters),
         "only events with FIELD=VALUE, or !=, <, <=, > or >=; may be repeated, and all must match", "FILTER"},
	{"count-by", OPTION_TEXTS, offsetof(struct trace_values, counts),
         "count events by these fields instead of printing them; may be repeated", "FIELDS"},
	{"hist", OPTION_TEXTS, offsetof(struct trace_values, hists),
         "print a histogram of this field, by powers of two; may be repeated", "FIELD"},
	{"limit", OPTION_NUMBER, offsetof(struct trace_values, events), "stop after N events", "N", .min = 1,
         .max = EVENTS_MAX},
	{"duration", OPTION_TIME, offsetof(struct trace_values, duration_s), "stop after TIME", "TIME"},
	{"map-keys", OPTION_NUMBER, offsetof(struct trace_values, map_keys),
         "how many keys each map of a script can have (default 4096), and each count (16384)", "N", .min = 1,
         .max = VPROF_MAP_ENTRIES_MAX},
	{"output", OPTION_FILE, offsetof(struct trace_values, output), "write to FILE instead of standard output",
         "FILE"},
	{"json", OPTION_FLAG, offsetof(struct trace_values, json),
         "print a JSON object for each event and one for the end", NULL},
	{NULL},
};

struct trace {
	const struct trace_values *given;
	struct trace_script *script; /* NULL: events */
	struct trace_source *source;
	struct trace_query *query; /* NULL: a script */
	char **print_fields;
	uint64_t events;
	int64_t start_us; /* g_get_monotonic_time(), CLOCK_MONOTONIC as the events' times */
};

/* ---- what was asked for ---- */

/* Those that were given, and that an event is of the process that was. */
static char **filters_of(const struct trace *trace)
{
	GPtrArray *filters = g_ptr_array_new();

	for (char **filter = trace->given->filters; filter && *filter; filter++)
		g_ptr_array_add(filters, g_strdup(*filter));
	if (trace->given->pid != 0)
		g_ptr_array_add(filters, g_strdup_printf("pid=%" G_GUINT64_FORMAT, trace->given->pid));
	if (trace->given->comm)
		g_ptr_array_add(filters, g_strconcat("comm=", trace->given->comm, NULL));
	g_ptr_array_add(filters, NULL);
	return (char **)g_ptr_array_free(filters, FALSE);
}

static bool parse(struct trace *trace, GError **error)
{
	const struct trace_values *given = trace->given;

	g_auto(GStrv) filters = filters_of(trace);
	const struct trace_query_options asked = {filters, given->counts, given->hists};

	if (!trace->script)
		trace->query = trace_query_new(&asked, error);
	if (given->fields)
		trace->print_fields = g_strsplit(given->fields, ",", -1);
	return trace->script || trace->query;
}

static void trace_clear(struct trace *trace)
{
	trace_query_free(trace->query);
	g_strfreev(trace->print_fields);
	trace_script_free(trace->script);
	trace_source_close(trace->source);
}

static bool check_fields(const struct trace *trace, const char *const *fields, GError **error)
{
	for (; fields && *fields; fields++) {
		if (trace_source_has_field(trace->source, *fields))
			continue;
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_FILTER,
			"no probe has a field \"%s\"; every event has time, vcpu, pid, tid, comm, probe, ip, func, stack, kstack and ustack, and `vprof probe args PROBE` shows the others",
			*fields);
		return false;
	}
	return true;
}

static void add_path(GPtrArray *paths, const char *field, bool always)
{
	if ((always || trace_field_is_path(field)) &&
	    !g_ptr_array_find_with_equal_func(paths, field, g_str_equal, NULL))
		g_ptr_array_add(paths, g_strdup(field));
}

/* What the engine has to read in the guest's memory for each event. */
static char **paths_of(const struct trace *trace)
{
	GPtrArray *paths = g_ptr_array_new();

	for (char **field = trace->print_fields; field && *field; field++)
		add_path(paths, *field, true);
	for (const char *const *field = trace->query ? trace_query_fields(trace->query) : NULL; field && *field;
	     field++)
		add_path(paths, *field, false);
	g_ptr_array_add(paths, NULL);
	return (char **)g_ptr_array_free(paths, FALSE);
}

static bool add_probe(struct trace *trace, const char *given, const struct trace_options *wanted, GError **error)
{
	g_autofree char *why = NULL, *probe = probe_name_full(given);
	unsigned left_out;

	if (!probe_name_is_pattern(probe))
		return trace_source_add(trace->source, probe, wanted, error);
	if (!trace_source_add_all(trace->source, probe, wanted, &left_out, &why, error))
		return false;
	if (left_out > 0)
		say("%u that match %s are left out; the first: %s", left_out, probe, why);
	return true;
}

/* A process that only probes of programs heed, where there is none of them. */
static bool check_processes(const struct trace *trace, GError **error)
{
	const struct trace_values *given = trace->given;
	const bool chosen = given->cgroup || (trace->script && (given->pid != 0 || given->comm));

	if (!chosen)
		return true;
	for (size_t i = 0; i < trace_source_count(trace->source); i++)
		if (probe_name_is_of_program(trace_source_probe(trace->source, i)->name))
			return true;
	g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE,
	            "%s chooses the processes for probes of programs, as user:BINARY:FUNCTION, and there is none%s",
	            given->cgroup     ? "--cgroup"
	            : given->pid != 0 ? "--pid"
	                              : "--comm",
	            trace->script ? "; a script has predicates for other probes, as /pid == 12/" : "");
	return false;
}

/* Probes of programs that no process has yet. */
static void say_waiting(const struct trace *trace)
{
	for (size_t i = 0; i < trace_source_count(trace->source); i++) {
		const struct trace_probe *probe = trace_source_probe(trace->source, i);

		if (!probe->waits)
			continue;
		say("%s waits for a process: none that it may be in has the file mapped yet%s%s", probe->name,
		    probe->similar ? "; there is " : "", probe->similar ? probe->similar : "");
	}
}

static bool place_query(struct trace *trace, GError **error)
{
	return check_fields(trace, trace_query_fields(trace->query), error) &&
	       check_fields(trace, (const char *const *)trace->print_fields, error) &&
	       trace_query_place(trace->query, trace->source, trace->given->events, trace->given->map_keys, error);
}

static bool trace_open(struct trace *trace, const char *engine, GError **error)
{
	g_auto(GStrv) registers = trace->given->registers ? g_strsplit(trace->given->registers, ",", -1) : NULL;
	g_auto(GStrv) paths = paths_of(trace);
	const struct trace_options wanted = {
		registers, paths, trace->given->stack || (trace->query && trace_query_needs_stack(trace->query)),
		trace->given->breakpoints};
	unsigned patches;

	trace->source = trace_source_open(engine, trace->given->symfs, error);
	if (!trace->source)
		return false;
	trace_source_choose(trace->source,
	                    &(struct trace_processes){trace->given->pid, trace->given->comm, trace->given->cgroup});
	if (trace->script &&
	    !trace_script_add(trace->script, trace->source, trace->given->breakpoints, trace->given->map_keys, error))
		return false;
	for (char **probe = trace->given->probes; !trace->script && *probe; probe++)
		if (!add_probe(trace, *probe, &wanted, error))
			return false;
	if (!check_processes(trace, error))
		return false;
	say_waiting(trace);
	patches = trace_source_patches(trace->source);
	if (patches > 0 && g_strcmp0(trace->given->breakpoints, TRACE_PATCH) != 0)
		say("more probes than the processor may have breakpoints for: %u of them are an INT3 in the guest's code",
		    patches);
	return trace->script || place_query(trace, error);
}

/* ---- events ---- */

static void print_json(json_t *object)
{
	json_write(object, JSON_COMPACT, stdout);
	putchar('\n');
	json_decref(object);
}

static bool counts(const struct trace *trace)
{
	return trace->query && trace_query_counts(trace->query);
}

static void show(const struct trace *trace, const struct trace_event *event)
{
	struct trace_names *names = trace_source_names(trace->source);

	if (trace->given->json)
		print_json(trace_event_json(event, names));
	else
		trace_print_event(event, (uint64_t)trace->start_us * 1000, names, stdout);
}

static bool enough(const struct trace *trace)
{
	return trace->given->events != 0 && trace->events >= trace->given->events;
}

static bool take_events(struct trace *trace, unsigned timeout_ms, GError **error)
{
	g_autoptr(GArray) events = trace_source_read(trace->source, timeout_ms, error);

	for (guint i = 0; events && i < events->len && !enough(trace); i++) {
		const struct trace_event *event = &g_array_index(events, struct trace_event, i);

		if (trace->script) {
			trace->events++;
			if (!trace_script_take(trace->script, event, trace->given->json, stdout, error))
				return false;
		} else if (trace_query_takes(trace->query, event)) {
			trace->events++;
			show(trace, event);
		}
	}
	fflush(stdout);
	return events != NULL;
}

static bool goes_on(const struct trace *trace)
{
	return !interrupted() && !(trace->script && trace_script_exited(trace->script)) &&
	       !trace_source_ended(trace->source) && !enough(trace) &&
	       !(trace->query && trace_query_is_full(trace->query)) && ferror(stdout) == 0 &&
	       (trace->given->duration_s == 0 ||
	        g_get_monotonic_time() - trace->start_us < (int64_t)(trace->given->duration_s * G_USEC_PER_SEC));
}

/* Runs until the given end or the guest's, and then takes what is left in the rings. */
static bool trace_run(struct trace *trace, GError **error)
{
	trace->start_us = g_get_monotonic_time();
	if (!trace_source_record(trace->source, error))
		return false;
	if (!trace->script && !counts(trace) && !trace->given->json)
		trace_print_header(stdout);
	while (goes_on(trace))
		if (!take_events(trace, POLL_MS, error))
			return false;
	/* The rings stay mapped after the engine has gone. */
	trace_source_stop(trace->source, NULL);
	return take_events(trace, 0, error);
}

/* ---- the end ---- */

static void warn_of_lost(const json_t *state)
{
	const json_t *probes = json_object_get(state, "probes");

	for (size_t i = 0; i < json_array_size(probes); i++) {
		const json_t *probe = json_array_get(probes, i);
		g_autofree char *name = text_printable(member_text(probe, "name"));

		if (json_is_true(json_object_get(probe, "intact")))
			continue;
		if (g_strcmp0(member_text(probe, "breakpoint"), "processor") == 0)
			say("the guest has unloaded the module of %s; later hits are not recorded", name);
		else if (json_is_integer(json_object_get(probe, "processes")))
			say("the guest has written to the file of %s, and has its code back; later hits are not recorded",
			    name);
		else
			say("the guest has overwritten the breakpoint of %s; later hits are not recorded", name);
	}
}

static void say_script(const struct trace *trace, const json_t *state)
{
	const json_t *statistics = json_object_get(state, "statistics");

	say("%" G_GUINT64_FORMAT " hits, %" G_GUINT64_FORMAT " events; %" G_GUINT64_FORMAT
	    " events dropped, %" G_GUINT64_FORMAT " changes of full maps, %" G_GUINT64_FORMAT " reads of memory failed",
	    member_number(statistics, "hit", 0), trace->events, member_number(statistics, "dropevt", 0),
	    member_number(statistics, "map-full", 0), member_number(statistics, "fault", 0));
}

static void say_unplaced(const json_t *state)
{
	const uint64_t n = member_number(json_object_get(state, "statistics"), "unplaced", 0);

	if (n > 0)
		say("%" G_GUINT64_FORMAT
		    " processes that began later were not probed: the processor's breakpoints were taken. --pid, --comm and --cgroup choose processes",
		    n);
}

/* Of programs, the engine counts hits, and as events what they have recorded. */
static void say_events(const struct trace *trace, const json_t *state)
{
	const json_t *statistics = json_object_get(state, "statistics");
	const uint64_t hits = member_number(statistics, "hit", 0), full = member_number(statistics, "map-full", 0);

	say("%" G_GUINT64_FORMAT " events, %" G_GUINT64_FORMAT " shown; %" G_GUINT64_FORMAT
	    " dropped, %" G_GUINT64_FORMAT " ticks skipped, %" G_GUINT64_FORMAT " without a known task",
	    hits > 0 ? hits : member_number(statistics, "event", 0), trace->events,
	    member_number(statistics, "dropevt", 0), member_number(statistics, "skiptick", 0),
	    member_number(statistics, "no-task", 0));
	if (full > 0)
		say("%" G_GUINT64_FORMAT
		    " are left out of a count, since there are too many combinations of values; give --map-keys for more, or count by fewer fields",
		    full);
}

static void print_summary(const struct trace *trace, const json_t *state)
{
	if (trace->query)
		trace_query_print(trace->query, stdout);
	fflush(stdout);
	if (!state)
		say("%" G_GUINT64_FORMAT " events shown; the engine has gone, so how many were dropped is not known",
		    trace->events);
	else if (trace->script)
		say_script(trace, state);
	else
		say_events(trace, state);
	say_unplaced(state);
}

static void print_summary_json(const struct trace *trace, json_t *state)
{
	json_t *end = json_pack("{s:I, s:O?}", "shown", (json_int_t)trace->events, "statistics",
	                        json_object_get(state, "statistics"));

	if (trace->query)
		trace_query_fill_json(trace->query, end);
	print_json(json_pack("{s:o}", "end", end));
}

static bool finish(struct trace *trace, GError **error)
{
	if (trace->script && !trace_script_finish(trace->script, trace->given->json, stdout, error))
		return false;
	if (trace->query && !trace_query_finish(trace->query, &trace->events, error))
		return false;
	json_t *state = trace_source_statistics(trace->source);

	warn_of_lost(state);
	if (trace->given->json)
		print_summary_json(trace, state);
	else
		print_summary(trace, state);
	json_decref(state);
	return true;
}

/* ---- scripts ---- */

/* NULL without an error: none is given. */
static char *script_text(const struct trace_values *given, GError **error)
{
	g_autofree char *file = NULL, *typed = NULL;
	gsize bytes = 0;
	bool has = given->script != NULL;

	if (given->script && !g_file_get_contents(given->script, &file, &bytes, error))
		return NULL;
	if (file && memchr(file, '\0', bytes)) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE, "%s is no text", given->script);
		return NULL;
	}
	for (char **probe = given->probes; probe && *probe; probe++)
		has |= trace_text_is_script(*probe);
	if (!has)
		return NULL;
	typed = given->probes ? g_strjoinv("\n", given->probes) : g_strdup("");
	return g_strconcat(file ? file : "", typed, NULL);
}

/* The line that a message names, and a mark below its column. */
static void say_where(const char *text, const char *message)
{
	unsigned number, column;
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

	if (sscanf(message, "%u:%u:", &number, &column) != 2 || number < 1 || number > g_strv_length(lines) ||
	    column < 1 || column > strlen(lines[number - 1]) + 1)
		return;
	g_strdelimit(lines[number - 1], "\t", ' ');
	say("  %s", lines[number - 1]);
	say("  %*s", (int)column, "^");
}

static bool check_script_options(const struct trace_values *given, GError **error)
{
	const struct {
		bool is_given;
		const char *name;
	} others[] = {
		{given->registers != NULL, "--registers"},
		{given->fields != NULL, "--fields"},
		{given->stack, "--stack"},
		{given->filters != NULL, "--filter"},
		{given->counts != NULL, "--count-by"},
		{given->hists != NULL, "--hist"},
		{given->events != 0, "--limit"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		if (!others[i].is_given)
			continue;
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILTER,
		            "%s is for events, and a script says itself what it shows", others[i].name);
		return false;
	}
	return true;
}

/* *text: the script, for messages; NULL: none. */
static bool read_script(struct trace *trace, unsigned n, char **arguments, char **text, GError **error)
{
	g_autoptr(GError) failure = NULL;
	g_autoptr(GPtrArray) parameters = g_ptr_array_new();

	*text = script_text(trace->given, &failure);
	if (*text && check_script_options(trace->given, error)) {
		for (unsigned i = 1; i < n; i++)
			g_ptr_array_add(parameters, arguments[i]);
		g_ptr_array_add(parameters, NULL);
		trace->script = trace_script_new(*text, (const char *const *)parameters->pdata, error);
	}
	if (failure)
		g_propagate_error(error, g_steal_pointer(&failure));
	return trace->script || (!*text && !*error);
}

static int fail(const char *script, const GError *error)
{
	if (!script || error->domain != SCRIPT_ERROR)
		return usage_error("trace", "%s", error->message);
	say("%s", error->message);
	say_where(script, error->message);
	return STATUS_USAGE;
}

/* Standard output becomes the file. */
static bool output_redirect(const char *path, GError **error)
{
	const int fd = output_open(path, O_TRUNC, 0666, error);

	if (fd < 0)
		return false;
	dup3(fd, STDOUT_FILENO, O_CLOEXEC);
	close(fd);
	return true;
}

static int trace_main(void *values, unsigned n, char **arguments)
{
	const struct trace_values *given = values;
	g_autoptr(GError) error = NULL;
	g_autofree char *text = NULL;
	struct trace trace = {.given = given};
	bool done;

	if (!given->probes && !given->script)
		return usage_error(
			"trace",
			"no probe given: use -e PROBE, e.g. -e function:vfs_read; `vprof probe list` shows what can be traced");
	if (!read_script(&trace, n, arguments, &text, &error) || !parse(&trace, &error)) {
		trace_clear(&trace);
		return fail(text, error);
	}
	if (!trace.script && n > 1)
		return usage_error("trace", "unexpected argument \"%s\": only a script has parameters", arguments[1]);
	if (given->output && !output_redirect(given->output, &error))
		return usage_error("trace", "%s", error->message);
	interrupt_watch();
	done = trace_open(&trace, n > 0 ? arguments[0] : NULL, &error) && trace_run(&trace, &error) &&
	       finish(&trace, &error);
	trace_clear(&trace);
	if (!done && error->domain == SCRIPT_ERROR)
		return fail(text, error);
	return done ? STATUS_OK : failure(error);
}

const struct command command_trace = {
	.name = "trace",
	.summary = "Print events in a running guest as they happen",
	.arguments = "[ENGINE [PARAMETER...]]",
	.max_arguments = 10,
	.argument_words = {"@engines"},
	.manual = "vprof-trace",
	.description =

		"ENGINE is a name or process id from `vprof list`, or the path of a socket. It may be omitted if\n"
		"only one engine runs.\n"
		"`vprof probe list` shows what can be traced.\n"
		"\n"
		"Examples:\n"
		"  vprof trace -e syscall:openat\n"
		"  vprof trace -e function:vfs_read -g --filter comm=sh -n 3\n"
		"  vprof trace -e 'syscall:*' --count-by comm,nr --duration 10s\n"
		"  vprof trace -e return:vfs_read --hist ns\n"
		"  vprof trace -e function:vfs_read --count-by kstack --duration 10s\n"
		"  vprof trace -e user:/usr/bin/bash:readline:return --symfs image\n"
		"  vprof trace -e 'usdt:/opt/app/server:pool:take' --symfs image\n"
		"  vprof trace -e tracepoint:sched:sched_switch --count-by 'str(next->comm)'\n"
		"  vprof trace -e 'tracepoint:sched:sched_switch { @[comm] = count(); }'\n"
		"  vprof trace -e 'kretprobe:vfs_read /retval > 0/ { @ = hist(retval); }'",
	.options = options,
	.values_bytes = sizeof(struct trace_values),
	.run = trace_main,
};
