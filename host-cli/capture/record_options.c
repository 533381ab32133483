// SPDX-License-Identifier: BSD-2-Clause
#include "capture/record_options.h"

#include "ui/text.h"
#include "ui/units.h"

G_DEFINE_QUARK(vprof_record_options_error, record_options_error)

struct record_options record_options;

static json_t *events_json(void)
{
	json_t *names = json_array();

	for (char **event = record_options.events; *event != NULL; event++)
		json_array_append_new(names, text_json(*event));
	return names;
}

static void call_chain_arguments(json_t *arguments, uint64_t depth)
{
	if (record_options.call_graph != NULL)
		json_object_set_new(arguments, "call-graph", text_json(record_options.call_graph));
	else if (record_options.call_chains)
		json_object_set_new(arguments, "call-graph", json_string("auto"));
	if (depth != 0)
		json_object_set_new(arguments, "call-depth", json_integer((json_int_t)depth));
	if (record_options.no_call_user)
		json_object_set_new(arguments, "call-user", json_false());
}

static void number_argument(json_t *arguments, const char *name, uint64_t number)
{
	if (number != 0)
		json_object_set_new(arguments, name, json_integer((json_int_t)number));
}

static bool exclude(bool both, const char *options, GError **error)
{
	if (both)
		g_set_error(error, RECORD_OPTIONS_ERROR, RECORD_OPTIONS_ERROR_EXCLUDE, "%s exclude each other",
		            options);
	return !both;
}

json_t *record_options_arguments(GError **error)
{
	const struct record_options *options = &record_options;
	uint64_t frequency_hz = 0, period = 0, depth = 0;
	json_t *arguments;

	if (!exclude(options->frequency != NULL && options->period != NULL, "--frequency and --count", error) ||
	    !exclude(options->no_tasks && options->switches, "--no-tasks and --switch-events", error) ||
	    !exclude(options->call_user && options->no_call_user, "--call-user and --no-call-user", error) ||
	    (options->frequency != NULL &&
	     !units_parse_number("--frequency", options->frequency, 1, INT64_MAX, &frequency_hz, error)) ||
	    (options->call_depth != NULL &&
	     !units_parse_number("--call-depth", options->call_depth, 1, INT64_MAX, &depth, error)) ||
	    (options->period != NULL && !units_parse_number("--count", options->period, 1, INT64_MAX, &period, error)))
		return NULL;
	arguments = json_object();
	if (options->events != NULL)
		json_object_set_new(arguments, "events", events_json());
	number_argument(arguments, "period", period);
	number_argument(arguments, "frequency-hz", frequency_hz);
	call_chain_arguments(arguments, depth);
	if (options->no_tasks)
		json_object_set_new(arguments, "tasks", json_false());
	if (options->switches)
		json_object_set_new(arguments, "switches", json_true());
	return arguments;
}
