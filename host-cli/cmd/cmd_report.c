// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "browse/browse.h"
#include "cmd/command.h"
#include "export/export.h"
#include "export/page.h"
#include "reading/filter.h"
#include "reading/symbol_options.h"
#include "report/report.h"
#include "ui/message.h"
#include "ui/units.h"

struct report_values {
	struct symbol_options symbols;
	struct filter_options filter;
	char *input, *sort, *kernel, *phase, *html, *svg;
	uint64_t limit; /* 0: none */
	double percent_limit;
	gboolean json, force, call_chains, contention, tui;
};

#define FILES_MAX 256u

static const struct option_row options[] = {
	{"input", OPTION_FILE, offsetof(struct report_values, input),
         "recording to read (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"sort", OPTION_TEXT, offsetof(struct report_values, sort),
         "columns to group by: " COLUMN_NAMES " (default " REPORT_DEFAULT_SORT ")", "COLUMN,...", "@columns"},
	{"limit", OPTION_NUMBER, offsetof(struct report_values, limit), "print at most N rows of each table", "N",
         .min = 1},
	{"percent-limit", OPTION_PERCENT, offsetof(struct report_values, percent_limit), "omit rows below P percent",
         "P"},
	{"phase", OPTION_TEXT, offsetof(struct report_values, phase),
         "use only the time within phases of this name, which may contain * and ?", "NAME", "@phases"},
	{"kernel", OPTION_FILE, offsetof(struct report_values, kernel),
         "take symbols from IMAGE instead of the recording", "IMAGE"},
	{"force", OPTION_FLAG, offsetof(struct report_values, force),
         "use IMAGE and files even if their build-ids differ", NULL},
	OPTION_ROWS(filter_option_rows, struct report_values, filter),
	OPTION_ROWS(filter_event_rows, struct report_values, filter),
	OPTION_ROWS(symbol_option_rows, struct report_values, symbols),
	{"call-chains", OPTION_FLAG, offsetof(struct report_values, call_chains),
         "also print the call tree, with callers above callees", NULL},
	{"contention", OPTION_FLAG, offsetof(struct report_values, contention),
         "print waits for locks, pages and devices instead, by what they wait in and by caller", NULL},
	{"json", OPTION_FLAG, offsetof(struct report_values, json), "print one JSON document", NULL},
	{"html", OPTION_FILE, offsetof(struct report_values, html),
         "write an HTML page instead: flame graph, timeline, functions", "FILE"},
	{"svg", OPTION_FILE, offsetof(struct report_values, svg),
         "write a flame graph instead, as an SVG without scripts for mail and job summaries", "FILE"},
	{"tui", OPTION_FLAG, offsetof(struct report_values, tui),
         "show the report on the whole terminal instead: callers, code, filter, search", NULL},
	{NULL},
};

static bool takes_screen(const void *values)
{
	return ((const struct report_values *)values)->tui;
}

static bool options_read(const struct report_values *given, struct report_options *report, bool several, GError **error)
{
	const char *usual = several ? REPORT_DEFAULT_SORT_SEVERAL : REPORT_DEFAULT_SORT;

	if (!column_list_parse(given->sort ? given->sort : usual, &report->columns, error))
		return false;
	if (!(given->percent_limit >= 0 && given->percent_limit <= 100)) {
		g_set_error(error, UNITS_ERROR, UNITS_ERROR_RANGE, "--percent-limit takes 0 to 100");
		return false;
	}
	report->limit = (size_t)given->limit;
	report->percent_limit = given->percent_limit;
	report->call_tree = given->call_chains || given->tui;
	return true;
}

static bool browse(const struct report_values *given, struct input *input, const struct report *report, GError **error)
{
	const struct annotation_options annotation = {
		.symbols = &given->symbols,
		.kernel = given->kernel,
		.force = given->force,
	};

	return browse_run(input, report, &annotation, error);
}

static bool print(const struct report_values *given, struct input *input, const struct report_options *report_options,
                  GError **error)
{
	struct report *report;
	bool done = true;

	if (given->html) {
		bool written = page_write(input, NULL, NULL, given->html, error);

		input_say_warnings(input);
		return written;
	}
	if (given->svg) {
		const char *name = given->filter.events ? given->filter.events[0] : NULL;
		const int event = input_event_number(input, name, error);

		return event >= 0 && export_input(&export_svg, input, (unsigned)event,
		                                  name ? -1 : input_waits_number(input, event), given->svg, error);
	}
	if (given->contention)
		return report_print_contention(input, report_options, given->json, stdout, error);
	report = report_new(input, report_options);
	if (given->tui)
		done = browse(given, input, report, error);
	input_say_warnings(input);
	if (given->json)
		report_print_json(report, stdout);
	else if (!given->tui)
		report_print_text(report, stdout);
	report_free(report);
	return done;
}

static struct input *open_one(const struct report_values *given, const char *path, GError **error)
{
	struct input *input = input_open(path, given->kernel, given->force, error);

	if (!input)
		return NULL;
	input_take_symbol_options(input, &given->symbols, given->force);
	if (input_select(input, &given->filter, error) &&
	    (!given->phase || input_select_phase(input, given->phase, error)))
		return input;
	input_free(input);
	return NULL;
}

static int report_one(const struct report_values *given, const char *path, const struct report_options *report_options)
{
	g_autoptr(GError) error = NULL;
	struct input *input = open_one(given, path, &error);

	if (input)
		print(given, input, report_options, &error);
	input_free(input);
	return !error ? STATUS_OK : failure(error);
}

static void free_one(void *input)
{
	input_free(input);
}

static int report_several(const struct report_values *given, char **paths, unsigned n,
                          const struct report_options *report_options)
{
	g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(free_one);
	g_autoptr(GError) error = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct input *input = open_one(given, paths[i], &error);

		if (!input)
			return failure(error);
		g_ptr_array_add(inputs, input);
	}
	struct report *report = report_new_several((struct input *const *)inputs->pdata, n, report_options);

	for (unsigned i = 0; i < n; i++)
		input_say_warnings(inputs->pdata[i]);
	if (given->json)
		report_print_json(report, stdout);
	else
		report_print_text(report, stdout);
	report_free(report);
	return STATUS_OK;
}

/* Options that cannot apply to several recordings. */
static bool check_several(const struct report_values *given, GError **error)
{
	const char *option = given->html          ? "--html"
	                     : given->svg         ? "--svg"
	                     : given->kernel      ? "--kernel"
	                     : given->call_chains ? "--call-chains"
	                     : given->contention  ? "--contention"
	                     : given->tui         ? "--tui"
	                                          : NULL;

	if (!option)
		return true;
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s applies to a single recording", option);
	return false;
}

static int report_run(void *values, unsigned n, char **arguments)
{
	const struct report_values *given = values;
	struct report_options report_options;
	const char *path = given->input;
	g_autoptr(GError) error = NULL;

	if (!options_read(given, &report_options, n > 1, &error) || !symbol_options_check(&given->symbols, &error) ||
	    !filter_options_check(&given->filter, &error) ||
	    !input_choose(&path, n > 0 ? arguments[0] : NULL, &error) || (n > 1 && !check_several(given, &error)))
		return usage_error(command_report.name, "%s", error->message);
	if (given->tui && (given->html || given->svg || given->json || given->contention))
		return usage_error(command_report.name, "--tui and %s exclude each other",
		                   given->html   ? "--html"
		                   : given->svg  ? "--svg"
		                   : given->json ? "--json"
		                                 : "--contention");
	if (given->tui && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return usage_error(command_report.name, "--tui needs a terminal; without it the report is printed");
	if ((given->html != NULL) + (given->svg != NULL) + (given->json != FALSE) > 1)
		return usage_error(command_report.name, "%s and %s exclude each other",
		                   given->html ? "--html" : "--svg", given->json ? "--json" : "--svg");
	if (given->contention && (given->html || given->svg || given->sort || given->call_chains))
		return usage_error(command_report.name, "--contention and %s exclude each other",
		                   given->html   ? "--html"
		                   : given->svg  ? "--svg"
		                   : given->sort ? "--sort"
		                                 : "--call-chains");
	if (given->html && !page_check(&error))
		return failure(error);
	return n > 1 ? report_several(given, arguments, n, &report_options) : report_one(given, path, &report_options);
}

const struct command command_report = {
	.name = "report",
	.summary = "Show the profile in a recording",
	.arguments = "[FILE...]",
	.max_arguments = FILES_MAX,
	.argument_words = {"@files"},
	.pages = true,
	.takes_screen = takes_screen,
	.manual = "vprof-report",
	.description =

		"Each row is a group of samples with its share of the event's periods (for clocks: of the time).\n"
		"Symbols come from the recording itself. In the column mode, vmm is time outside the guest, named\n"
		"after the exit that was handled. A truncated recording is reported as far as it goes, with a\n"
		"warning.\n"
		"Several recordings make one report, in which the column domain holds the names of the guests.\n"
		"\n"
		"Examples:\n"
		"  vprof report                        the profile in " INPUT_DEFAULT_PATH "\n"
		"  vprof report --sort cpu,mode        how busy each vCPU was, and with what\n"
		"  vprof report --sort comm,pid,sym    what each process did\n"
		"  vprof report --sort cgroup,comm     what each cgroup did: services, containers\n"
		"  vprof report --sort mode,sym,ip -n 30\n"
		"                                      the 30 hottest instructions\n"
		"  vprof report --phase 'repeat-*'     only what ran within phases of these names\n"
		"  vprof report --contention           what tasks waited for (--off-cpu, --wall)\n"
		"  vprof report -g                     who called what, if recorded with -g\n"
		"  vprof report recordings/*.data      several guests side by side\n"
		"  vprof report --html profile.html    a page for a browser\n"
		"  vprof report --tui                  on the terminal: callers, code, search\n"
		"  vprof report --svg profile.svg      a flame graph for mail and job summaries\n"
		"  vprof report --json | jq -r '.tables[].rows[] | [.share, .symbol] | @tsv'",
	.options = options,
	.values_bytes = sizeof(struct report_values),
	.run = report_run,
};
