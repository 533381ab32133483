// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "cmd/command.h"
#include "compare/history.h"
#include "reading/filter.h"
#include "ui/message.h"
#include "ui/output_file.h"

struct history_values {
	struct filter_options filter;
	char **metrics, **throughputs;
	char *event, *html;
	double alpha;
	gboolean json, force;
};

static const struct history_values defaults = {.alpha = 0.01};

static const struct option_row options[] = {
	{"metric", OPTION_TEXTS, offsetof(struct history_values, metrics), "show only this metric; may be repeated",
         "NAME"},
	{"throughput", OPTION_TEXTS, offsetof(struct history_values, throughputs),
         "treat more of NAME as better; may be repeated", "NAME"},
	{"alpha", OPTION_FRACTION, offsetof(struct history_values, alpha),
         "rate of false changes of a steady metric (default 0.01)", "A"},
	{"event", OPTION_TEXT, offsetof(struct history_values, event),
         "measure recordings by EVENT, e.g. wall, instead of their first event", "EVENT"},
	OPTION_ROWS(filter_option_rows, struct history_values, filter),
	{"force", OPTION_FLAG, offsetof(struct history_values, force), "include runs made under different conditions",
         NULL},
	{"json", OPTION_FLAG, offsetof(struct history_values, json), "print one JSON document", NULL},
	{"html", OPTION_FILE, offsetof(struct history_values, html),
         "write an HTML page instead: each metric over the runs, with its changes", "FILE"},
	{NULL},
};

static bool write_html(FILE *to, const void *history, GError **error)
{
	(void)error;
	history_print_html(history, to);
	return true;
}

static int history_run(void *values, unsigned n, char **arguments)
{
	const struct history_values *given = values;
	g_autoptr(GError) error = NULL;

	if (n == 0)
		return usage_error(command_history.name, "DIR is missing: a folder with one file per run");
	if (!(given->alpha >= CHANGE_ALPHA_MIN && given->alpha <= 0.5))
		return usage_error(command_history.name, "--alpha takes a number from %g to 0.5", CHANGE_ALPHA_MIN);
	if (!filter_options_check(&given->filter, &error))
		return usage_error(command_history.name, "%s", error->message);
	if (given->json && given->html)
		return usage_error(command_history.name, "--json and --html exclude each other");
	const struct history_options history_options = {
		.metrics = given->metrics,
		.throughputs = given->throughputs,
		.event = given->event,
		.filter = &given->filter,
		.alpha = given->alpha,
		.force = given->force,
	};
	struct history *history = history_load(arguments[0], &history_options, &error);

	if (!history)
		return failure(error);
	if (history->tracks->len == 0)
		g_set_error(&error, MEASURED_ERROR, MEASURED_ERROR_EMPTY, "no run in %s has a metric \"%s\"",
		            arguments[0], given->metrics[0]);
	else if (given->html)
		output_file_write(given->html, history_mode(history), write_html, history, &error);
	else if (given->json)
		history_print_json(history, stdout);
	else
		history_print_text(history, stdout);
	history_free(history);
	return !error ? STATUS_OK : failure(error);
}

const struct command command_history = {
	.name = "history",
	.summary = "Find where a metric shifted",
	.arguments = "DIR",
	.max_arguments = 1,
	.argument_words = {"@files"},
	.pages = true,
	.manual = "vprof-history",
	.description =

		"DIR holds one file per run: measurements (*.json, as `vprof gate --update-baseline` writes them)\n"
		"or a recording (*.data). Runs are ordered by name, and numbers in names by value. A change needs\n"
		"at least six runs, three on each side.\n"
		"\n"
		"Examples:\n"
		"  vprof history runs/\n"
		"  vprof history --metric guest runs/\n"
		"  vprof history --throughput requests runs/\n"
		"  vprof history --html history.html runs/\n"
		"  vprof history --json runs/ | jq '.metrics[] | select(.levels | length > 1)'",
	.options = options,
	.values_bytes = sizeof(struct history_values),
	.defaults = &defaults,
	.run = history_run,
};
