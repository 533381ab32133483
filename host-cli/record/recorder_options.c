// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorder_options.h"

#include <vprof/control.h>

#include "ui/text.h"

G_DEFINE_QUARK(vprof_recorder_options_error, recorder_options_error)

#define WALL_HZ 10

const struct option_row recorder_option_rows[] = {
	{"event", OPTION_LIST, offsetof(struct recorder_options, events),
         "event to sample, e.g. cycles, instructions:u or task-clock; may be repeated", "EVENT", "@events",
         .max = VPROF_EVENTS_MAX},
	{"count", OPTION_NUMBER, offsetof(struct recorder_options, period),
         "events between two samples; for clocks, nanoseconds", "PERIOD", .min = 1},
	{"call-chains", OPTION_FLAG, offsetof(struct recorder_options, call_chains),
         "record call chains of the guest's kernel and user space (--call-graph=auto)", NULL},
	{"call-graph", OPTION_TEXT, offsetof(struct recorder_options, call_graph),
         "how to find callers: auto, orc, fp (frame pointers) or none", "HOW", "auto orc fp none"},
	{"call-depth", OPTION_NUMBER, offsetof(struct recorder_options, call_depth),
         "maximum frames of a call chain (default 64, at most 127)", "N", .min = 1, .max = VPROF_CALL_DEPTH_MAX},
	{"call-user", OPTION_FLAG, offsetof(struct recorder_options, call_user),
         "continue call chains into user space (the default)", NULL},
	{"no-call-user", OPTION_FLAG, offsetof(struct recorder_options, no_call_user),
         "end call chains at the entry to the kernel", NULL},
	{"wall", OPTION_FLAG, offsetof(struct recorder_options, wall),
         "also sample the tasks that wait, ten times a second (event wall; implies -g)", NULL},
	{"idle-threads", OPTION_FLAG, offsetof(struct recorder_options, idle_threads),
         "also record the waits of kernel threads that have no work", NULL},
	{"no-tasks", OPTION_FLAG, offsetof(struct recorder_options, no_tasks),
         "do not look up the running task of a Linux guest", NULL},
	{"output", OPTION_FILE, offsetof(struct recorder_options, output),
         "recording to write (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"no-report", OPTION_FLAG, offsetof(struct recorder_options, no_report), "do not print the profile at the end",
         NULL},
	{NULL},
};

static json_t *events_json(char **names)
{
	json_t *events = json_array();

	for (; *names; names++)
		json_array_append_new(events, text_json(*names));
	return events;
}

static void number_argument(json_t *arguments, const char *name, uint64_t number)
{
	if (number != 0)
		json_object_set_new(arguments, name, json_integer((json_int_t)number));
}

static void call_chain_arguments(const struct recorder_options *options, json_t *arguments)
{
	if (options->call_graph)
		json_object_set_new(arguments, "call-graph", text_json(options->call_graph));
	else if (options->call_chains || options->wall || options->off_cpu)
		json_object_set_new(arguments, "call-graph", json_string("auto"));
	number_argument(arguments, "call-depth", options->call_depth);
	if (options->no_call_user)
		json_object_set_new(arguments, "call-user", json_false());
}

static bool exclude(bool both, const char *options, GError **error)
{
	if (both)
		g_set_error(error, RECORDER_OPTIONS_ERROR, RECORDER_OPTIONS_ERROR_EXCLUDE, "%s exclude each other",
		            options);
	return !both;
}

static bool has_waits(const struct recorder_options *options, GError **error)
{
	if (options->wall || options->off_cpu || !options->idle_threads)
		return true;
	g_set_error_literal(error, RECORDER_OPTIONS_ERROR, RECORDER_OPTIONS_ERROR_ALONE,
	                    "--idle-threads has no waits to record; give --wall or --off-cpu, too");
	return false;
}

json_t *recorder_options_arguments(const struct recorder_options *options, GError **error)
{
	json_t *arguments;

	if (!exclude(options->frequency_hz != 0 && options->period != 0, "--frequency and --count", error) ||
	    !exclude(options->no_tasks && options->switches, "--no-tasks and --switch-events", error) ||
	    !exclude(options->no_tasks && options->wall, "--no-tasks and --wall", error) ||
	    !exclude(options->no_tasks && options->off_cpu, "--no-tasks and --off-cpu", error) ||
	    !has_waits(options, error) ||
	    !exclude(options->call_user && options->no_call_user, "--call-user and --no-call-user", error))
		return NULL;
	arguments = json_object();
	if (options->events)
		json_object_set_new(arguments, "events", events_json(options->events));
	number_argument(arguments, "period", options->period);
	number_argument(arguments, "frequency-hz", options->frequency_hz);
	call_chain_arguments(options, arguments);
	if (options->no_tasks)
		json_object_set_new(arguments, "tasks", json_false());
	if (options->wall)
		json_object_set_new(arguments, "wall-hz", json_integer(WALL_HZ));
	if (options->off_cpu)
		json_object_set_new(arguments, "off-cpu", json_true());
	if (options->idle_threads)
		json_object_set_new(arguments, "idle-threads", json_true());
	if (options->switches)
		json_object_set_new(arguments, "switches", json_true());
	return arguments;
}
