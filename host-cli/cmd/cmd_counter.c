// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <vprof/control.h>

#include "cmd/command.h"
#include "engine/counters.h"
#include "engine/engine_find.h"
#include "engine/engine_process.h"
#include "reading/input.h"
#include "record/recorder.h"
#include "record/recorder_options.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/units.h"

#define SECONDS_DEFAULT 10u
#define EVENT_DEFAULT "task-clock"
#define COUNTER_MAX 31u

struct counter_values {
	char **events, **pids, **comms, **tables;
	char *output, *call_graph, *on_full;
	uint64_t duration_s, frequency_hz, period, vcpu, call_depth;
	gboolean descendants, estimate, per_switch, no_report, json, call_chains, no_call_user;
};

static const struct counter_values defaults = {.duration_s = SECONDS_DEFAULT, .vcpu = OPTION_NUMBER_NONE};

static const struct option_row options[] = {
	{"event", OPTION_LIST, offsetof(struct counter_values, events),
         "event to count (default " EVENT_DEFAULT "); may be repeated", "EVENT", "@events"},
	{"pid", OPTION_TEXTS, offsetof(struct counter_values, pids),
         "only while this process of the guest runs; may be repeated", "PID"},
	{"comm", OPTION_TEXTS, offsetof(struct counter_values, comms),
         "only threads of this name, which may contain * and ?; may be repeated", "GLOB"},
	{"cr3", OPTION_TEXTS, offsetof(struct counter_values, tables),
         "only code that runs on these page tables; may be repeated", "ADDRESS"},
	{"descendants", OPTION_FLAG, offsetof(struct counter_values, descendants),
         "include the descendants of those processes", NULL},
	{"vcpu", OPTION_NUMBER, offsetof(struct counter_values, vcpu), "on this vCPU only", "N",
         .max = VPROF_VCPUS_MAX - 1},
	{"estimate", OPTION_FLAG, offsetof(struct counter_values, estimate),
         "count: estimate from samples instead of counting exactly, and split by mode", NULL},
	{"per-switch", OPTION_FLAG, offsetof(struct counter_values, per_switch),
         "record: instead of samples, the exact counts of those tasks from switch to switch, and to their end", NULL},
	{"on-full", OPTION_TEXT, offsetof(struct counter_values, on_full),
         "record: while a ring is nearly full, drop what finds no room (the default), or stall: do not count", "WHAT",
         "drop stall"},
	{"frequency", OPTION_NUMBER, offsetof(struct counter_values, frequency_hz),
         "record: samples per second of vCPU time (default " G_STRINGIFY(VPROF_FREQUENCY_HZ_DEFAULT) ")", "HZ",
         .min = 1, .max = VPROF_FREQUENCY_HZ_MAX},
	{"count", OPTION_NUMBER, offsetof(struct counter_values, period),
         "record: one sample every N events; for clocks, nanoseconds", "N", .min = 1},
	{"call-chains", OPTION_FLAG, offsetof(struct counter_values, call_chains),
         "record: with call chains of the guest's kernel and user space (--call-graph=auto)", NULL},
	{"call-graph", OPTION_TEXT, offsetof(struct counter_values, call_graph),
         "record: how to find callers: auto, orc, fp (frame pointers) or none", "HOW", "auto orc fp none"},
	{"call-depth", OPTION_NUMBER, offsetof(struct counter_values, call_depth),
         "record: maximum frames of a call chain (default 64, at most 127)", "N", .min = 1,
         .max = VPROF_CALL_DEPTH_MAX},
	{"no-call-user", OPTION_FLAG, offsetof(struct counter_values, no_call_user),
         "record: end call chains at the entry to the kernel", NULL},
	{"output", OPTION_FILE, offsetof(struct counter_values, output),
         "record: recording to write (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"no-report", OPTION_FLAG, offsetof(struct counter_values, no_report),
         "record: do not print the top of the profile", NULL},
	{"duration", OPTION_TIME, offsetof(struct counter_values, duration_s),
         "how long to count or record (default 10s)", "TIME"},
	{"json", OPTION_FLAG, offsetof(struct counter_values, json), "print JSON", NULL},
	{NULL},
};

/* ---- list ---- */

static char *targets_text(const json_t *counter)
{
	GString *text = g_string_new(NULL);
	const json_t *target;
	size_t i;

	json_array_foreach(json_object_get(counter, "targets"), i, target) {
		const char *comm = member_text(target, "comm"), *root = member_text(target, "cr3");

		g_string_append(text, i != 0 ? "," : "");
		if (comm || root)
			g_string_append(text, comm ? comm : root);
		else
			g_string_append_printf(text, "%" PRIu64, member_number(target, "pid", 0));
	}
	return g_string_free(text, FALSE);
}

static void counter_print(const json_t *counter)
{
	g_autofree char *targets = targets_text(counter);
	const char *event = member_text(counter, "event"), *mode = member_text(counter, "mode");

	printf("%7" PRIu64 " %-9s %-11s %8" PRIu64 " %6" PRIu64 " %-14s %-18s %s\n",
	       member_number(counter, "counter", 0), member_text(counter, "state"), member_text(counter, "disposition"),
	       member_number(counter, "pid", 0), member_number(counter, "uid", 0), mode ? mode : "-",
	       event ? event : "-", targets);
}

static bool list(const struct counter_values *given, struct client *client, GError **error)
{
	json_t *answer = engine_ask(client, "query-counters", NULL, error);
	const json_t *counters = json_object_get(answer, "counters"), *counter;
	size_t i;

	if (!answer)
		return false;
	if (given->json) {
		text_print_json(counters, 0, stdout);
	} else if (json_array_size(counters) != 0) {
		printf("%7s %-9s %-11s %8s %6s %-14s %-18s %s\n", "COUNTER", "STATE", "DISPOSITION", "PID", "UID",
		       "MODE", "EVENT", "TASKS");
		json_array_foreach(counters, i, counter)
			counter_print(counter);
	}
	json_decref(answer);
	return true;
}

/* ---- host ---- */

static void pmu_print(const json_t *pmu)
{
	const json_t *general = json_object_get(pmu, "general"), *fixed = json_object_get(pmu, "fixed");

	if (!json_is_object(pmu)) {
		puts("PMU: none, according to the processor");
		return;
	}
	if (member_number(general, "counters", 0) == 0) {
		printf("PMU: %s, version %" PRIu64 "\n", member_text(pmu, "name"), member_number(pmu, "version", 0));
		return;
	}
	printf("PMU: %s, version %" PRIu64 ", %" PRIu64 " counters of %" PRIu64 " bits, %" PRIu64 " fixed of %" PRIu64
	       "\n",
	       member_text(pmu, "name"), member_number(pmu, "version", 0), member_number(general, "counters", 0),
	       member_number(general, "width", 0), member_number(fixed, "counters", 0),
	       member_number(fixed, "width", 0));
}

static void events_print(const json_t *host, bool usable)
{
	const json_t *event;
	size_t i;

	json_array_foreach(json_object_get(host, "events"), i, event) {
		if (json_is_true(json_object_get(event, "usable")) != usable)
			continue;
		if (usable)
			printf("%-18s %-14s %s\n", member_text(event, "name"), member_text(event, "backend"),
			       member_text(event, "summary"));
		else
			printf("%-18s %-14s %s\n", member_text(event, "name"), "-", member_text(event, "why"));
	}
}

static void host_print(const json_t *host)
{
	pmu_print(json_object_get(host, "pmu"));
	printf("counters for clients: %" PRIu64 "\n\n%-18s %-14s %s\n", member_number(host, "counters", 0), "EVENT",
	       "BACKEND", "WHAT, OR WHY NOT");
	events_print(host, true);
	events_print(host, false);
}

static bool host(const struct counter_values *given, struct client *client, GError **error)
{
	json_t *answer = engine_ask(client, "query-host", NULL, error);

	if (!answer)
		return false;
	if (given->json)
		text_print_json(answer, 0, stdout);
	else
		host_print(answer);
	json_decref(answer);
	return true;
}

/* ---- count ---- */

static bool limited(const struct counter_values *given)
{
	return given->pids || given->comms || given->tables;
}

static bool attach(struct client *client, uint64_t counter, const char *name, json_t *target, GError **error)
{
	return engine_tell(client, "counter-attach",
	                   json_pack("{s:I, s:o}", "counter", (json_int_t)counter, name, target), error);
}

static bool attach_all(const struct counter_values *given, struct client *client, uint64_t counter, GError **error)
{
	for (char **pid = given->pids; pid && *pid; pid++) {
		uint64_t number;

		if (!units_parse_number("--pid", *pid, 0, INT32_MAX, &number, error) ||
		    !attach(client, counter, "pid", json_integer((json_int_t)number), error))
			return false;
	}
	for (char **comm = given->comms; comm && *comm; comm++)
		if (!attach(client, counter, "comm", text_json(*comm), error))
			return false;
	for (char **root = given->tables; root && *root; root++)
		if (!attach(client, counter, "cr3", text_json(*root), error))
			return false;
	return true;
}

/* Allocated and attached, those that the engine has not refused; NULL: `error`. */
static json_t *prepare_all(const struct counter_values *given, struct client *client, struct counters_kind *kind,
                           GError **error)
{
	char *fallback[] = {(char *)EVENT_DEFAULT, NULL};
	const json_t *counter;
	size_t i;

	kind->one_vcpu = given->vcpu != OPTION_NUMBER_NONE;
	kind->vcpu = given->vcpu;
	json_t *counters = counters_allocate(client, given->events ? given->events : fallback, kind, error);

	json_array_foreach(counters, i, counter) {
		if (json_object_get(counter, "counter") &&
		    !attach_all(given, client, member_number(counter, "counter", 0), error)) {
			json_decref(counters);
			return NULL;
		}
	}
	return counters;
}

static void count_print(const struct counter_values *given, const json_t *counters, double seconds)
{
	counters_print(counters, given->estimate, stdout);
	printf("\nin %.3f s\n", seconds);
}

static bool count(const struct counter_values *given, struct client *client, GError **error)
{
	bool done;
	struct counters_kind kind = {
		.mode = limited(given) ? "task-counting" : "guest-counting",
		.estimate = given->estimate,
		.descendants = given->descendants,
	};
	json_t *counters = prepare_all(given, client, &kind, error);

	if (!counters)
		return false;
	gint64 start_us = g_get_monotonic_time();

	done = counters_for_all(client, counters, "counter-start", false, error);
	if (done) {
		g_usleep(given->duration_s * G_USEC_PER_SEC);
		done = counters_for_all(client, counters, "counter-read", true, error);
	}
	double elapsed = (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;

	if (done && given->json)
		text_print_json(counters, 0, stdout);
	else if (done)
		count_print(given, counters, elapsed);
	json_decref(counters);
	return done;
}

/* ---- record ---- */

static bool take_rate(const struct counter_values *given, struct counters_kind *kind, GError **error)
{
	if (given->frequency_hz != 0 && given->period != 0) {
		g_set_error(error, RECORDER_OPTIONS_ERROR, RECORDER_OPTIONS_ERROR_EXCLUDE,
		            "--frequency and --count exclude each other");
		return false;
	}
	kind->frequency_hz = given->frequency_hz;
	kind->period = given->period;
	return true;
}

static void take_chains(const struct counter_values *given, struct counters_kind *kind)
{
	kind->call_graph = given->call_graph ? given->call_graph : given->call_chains ? "auto" : NULL;
	kind->no_call_user = given->no_call_user;
	kind->call_depth = given->call_depth;
}

static bool take_per_switch(const struct counter_values *given, struct counters_kind *kind, GError **error)
{
	if (!given->per_switch)
		return true;
	if (!limited(given) || kind->frequency_hz != 0 || kind->period != 0 || kind->call_graph) {
		g_set_error(error, RECORDER_OPTIONS_ERROR, RECORDER_OPTIONS_ERROR_EXCLUDE,
		            limited(given)
		                    ? "--per-switch takes no samples; it excludes --frequency, --count and --call-graph"
		                    : "--per-switch counts tasks; name them with --pid, --comm or --cr3");
		return false;
	}
	kind->mode = "task-counting";
	kind->per_switch = true;
	return true;
}

/* Says what the engine has refused, and leaves it out. */
static void drop_refused(json_t *counters)
{
	for (size_t i = json_array_size(counters); i-- > 0;) {
		const char *refused = member_text(json_array_get(counters, i), "error");

		if (!refused)
			continue;
		warn("%s", refused);
		json_array_remove(counters, i);
	}
}

static bool record(const struct counter_values *given, struct client *client, GError **error)
{
	struct counters_kind kind = {.mode = limited(given) ? "task-sampling" : "guest-sampling",
	                             .descendants = given->descendants,
	                             .on_full = given->on_full};
	const char *path = given->output ? given->output : INPUT_DEFAULT_PATH;

	if (!take_rate(given, &kind, error))
		return false;
	take_chains(given, &kind);
	if (!take_per_switch(given, &kind, error))
		return false;
	json_t *counters = prepare_all(given, client, &kind, error);

	drop_refused(counters);
	bool done = counters && recorder_counters(client, counters, given->duration_s, path, error);

	json_decref(counters);
	return done &&
	       (given->no_report || recording_print_top(path, given->per_switch ? "pid,comm" : NULL, stdout, error));
}

/* ---- disable, enable ---- */

static bool administer(struct client *client, const char *method, const char *number, GError **error)
{
	uint64_t counter;

	return units_parse_number("COUNTER", number, 0, COUNTER_MAX, &counter, error) &&
	       engine_tell(client, "control-take", NULL, error) &&
	       engine_tell(client, method, json_pack("{s:I}", "counter", (json_int_t)counter), error);
}

static int counter_do(const struct counter_values *given, const char *action, const char *engine, const char *number)
{
	g_autoptr(GError) error = NULL;
	struct client *client = engine_find(engine, &error);
	bool done = false;

	if (!client)
		return failure(error);
	if (strcmp(action, "list") == 0)
		done = list(given, client, &error);
	else if (strcmp(action, "host") == 0)
		done = host(given, client, &error);
	else if (strcmp(action, "count") == 0)
		done = count(given, client, &error);
	else if (strcmp(action, "record") == 0)
		done = record(given, client, &error);
	else
		done = administer(client, strcmp(action, "disable") == 0 ? "counter-disable" : "counter-enable", number,
		                  &error);
	client_free(client);
	if (done)
		return STATUS_OK;
	return error->domain == UNITS_ERROR || error->domain == RECORDER_OPTIONS_ERROR
	               ? usage_error(command_counter.name, "%s", error->message)
	               : failure(error);
}

static int counter_run(void *values, unsigned n, char **arguments)
{
	const struct counter_values *given = values;
	static const char *const actions[] = {"list", "host", "count", "record", "disable", "enable", NULL};
	const char *action = n > 0 ? arguments[0] : "list";
	bool administers = strcmp(action, "disable") == 0 || strcmp(action, "enable") == 0;

	if (!g_strv_contains(actions, action))
		return usage_error(command_counter.name,
		                   "unknown action \"%s\"; use list, host, count, record, disable or enable", action);
	if (administers != (n == 3))
		return usage_error(command_counter.name,
		                   administers ? "COUNTER is missing: %s ENGINE COUNTER" : "%s takes no counter",
		                   action);
	return counter_do(given, action, n > 1 ? arguments[1] : NULL, n > 2 ? arguments[2] : NULL);
}

const struct command command_counter = {
	.name = "counter",
	.summary = "Count events in a running guest or in some of its tasks",
	.arguments = "[ACTION [ENGINE [COUNTER]]]",
	.max_arguments = 3,
	.argument_words = {"list host count record disable enable", "@engines", ""},
	.manual = "vprof-counter",
	.description =

		"ACTION is list (the default), host, count, record, disable or enable: list shows which counters of the engine are in use, host what can be counted. count counts for a\n"
		"while; record writes samples to a recording, as `vprof run` does. disable and enable say whether\n"
		"a counter may be allocated.\n"
		"ENGINE is a name or process id from `vprof list`, or the path of a socket. It may be omitted if\n"
		"only one engine runs.\n"
		"\n"
		"Examples:\n"
		"  vprof counter\n"
		"  vprof counter count bzImage-1234 -e cycles:u,cycles:k --duration 5s\n"
		"  vprof counter count 1234 -p 42 --descendants\n"
		"  vprof counter count --comm 'kworker/*' --estimate --json\n"
		"  vprof counter record 1234 -p 42 -F 500 -g -o task.data\n"
		"  vprof counter record 1234 --comm 'nginx*' -e instructions --per-switch\n"
		"  vprof counter disable 1234 7",
	.options = options,
	.values_bytes = sizeof(struct counter_values),
	.defaults = &defaults,
	.run = counter_run,
};
