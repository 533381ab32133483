// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "export/export.h"
#include "reading/filter.h"
#include "reading/symbol_options.h"
#include "ui/message.h"

struct export_values {
	struct symbol_options symbols;
	struct filter_options filter;
	char *input, *to, *output, *kernel, *event;
	gboolean force;
};

static const struct option_row options[] = {
	{"to", OPTION_TEXT, offsetof(struct export_values, to), "output format, one of those below", "FORMAT",
         "@formats"},
	{"input", OPTION_FILE, offsetof(struct export_values, input),
         "recording to read (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"output", OPTION_FILE, offsetof(struct export_values, output), "file to write (default -, standard output)",
         "FILE"},
	{"event", OPTION_TEXT, offsetof(struct export_values, event), "event to export (default: the first)", "EVENT",
         "@recorded-events"},
	{"kernel", OPTION_FILE, offsetof(struct export_values, kernel),
         "take symbols from IMAGE instead of the recording", "IMAGE"},
	{"force", OPTION_FLAG, offsetof(struct export_values, force),
         "use IMAGE and files even if their build-ids differ", NULL},
	OPTION_ROWS(filter_option_rows, struct export_values, filter),
	OPTION_ROWS(symbol_option_rows, struct export_values, symbols),
	{NULL},
};

static bool export(const struct export_values *given, struct input *input, const struct exporter *exporter,
                   const char *path, GError **error)
{
	const int event = input_event_number(input, given->event, error);
	g_autofree char *cached = NULL;

	if (event < 0)
		return false;
	if (exporter == &export_buildid_cache) {
		cached = export_buildid_cache_path(input, given->output, error);
		if (!cached)
			return false;
		path = cached;
	}
	/* With an event that was named, that one only. */
	const int waits = exporter == &export_svg && !given->event ? input_waits_number(input, event) : -1;

	return export_input(exporter, input, (unsigned)event, waits, path, error);
}

static int export_run(void *values, unsigned n, char **arguments)
{
	const struct export_values *given = values;
	const struct exporter *exporter = given->to ? exporter_find(given->to) : NULL;
	const char *output = given->output ? given->output : "-", *path = given->input;
	g_autoptr(GError) error = NULL;
	struct input *input;

	if (!exporter) {
		g_autofree char *names = exporter_names();

		return usage_error(command_export.name, "--to takes %s", names);
	}
	if (exporter->binary && strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
		return usage_error(command_export.name, "%s is not for terminals; --output FILE", exporter->name);
	if (!symbol_options_check(&given->symbols, &error) || !filter_options_check(&given->filter, &error) ||
	    !input_choose(&path, n > 0 ? arguments[0] : NULL, &error))
		return usage_error(command_export.name, "%s", error->message);
	input = input_open(path, given->kernel, given->force, &error);
	if (!input)
		return failure(error);
	input_take_symbol_options(input, &given->symbols, given->force);
	if (input_select(input, &given->filter, &error))
		export(given, input, exporter, output, &error);
	input_free(input);
	return !error ? STATUS_OK : failure(error);
}

const struct command command_export = {
	.name = "export",
	.summary = "Write a profile in the format of another tool",
	.arguments = "[FILE]",
	.max_arguments = 1,
	.argument_words = {"@files"},
	.manual = "vprof-export",
	.description =

		"Formats:\n"
		"  folded       one stack per line: FlameGraph, inferno, speedscope\n"
		"  pprof        profile.proto: go tool pprof, Pyroscope, Parca, Grafana\n"
		"  speedscope   speedscope.app\n"
		"  firefox      profiler.firefox.com: a track for each task, phases as markers\n"
		"  perfetto     ui.perfetto.dev: vCPUs, tasks and their waits, phases, samples\n"
		"  perf-script  the text of perf script: stackcollapse-perf.pl and others\n"
		"  csv          one line per sample: spreadsheets, pandas, DuckDB\n"
		"  otlp         OpenTelemetry's profiles signal (v1development): collectors\n"
		"  svg          a flame graph without scripts: browsers, mail, job summaries\n"
		"  kallsyms     the kernel's functions, for perf report --kallsyms FILE\n"
		"  buildid-cache  the same into perf's cache, ~/.debug or -o FOLDER: perf report\n"
		"               and Hotspot need no option then\n"
		"A recording itself is a perf.data file, which perf and Hotspot open. They name the kernel's\n"
		"functions only with a vmlinux, with the list of kallsyms above, or from that cache.\n"
		"\n"
		"Examples:\n"
		"  vprof export -t svg -o profile.svg\n"
		"  vprof export -t pprof -o profile.pb.gz && go tool pprof -top profile.pb.gz\n"
		"  vprof export -t folded old.data | grep vfs_read\n"
		"  vprof export -t buildid-cache && perf report -i vprof.data\n"
		"  vprof export -t kallsyms -o kallsyms && perf report --kallsyms kallsyms",
	.options = options,
	.values_bytes = sizeof(struct export_values),
	.run = export_run,
};
