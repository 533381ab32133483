// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/annotation.h"
#include "cmd/command.h"
#include "reading/filter.h"
#include "reading/symbol_options.h"
#include "ui/message.h"

struct annotate_values {
	struct symbol_options symbols;
	struct filter_options filter;
	char *input, *kernel, *module, *phase;
	gboolean json, force, intel;
};

static const struct option_row options[] = {
	{"input", OPTION_FILE, offsetof(struct annotate_values, input),
         "recording to read (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"module", OPTION_TEXT, offsetof(struct annotate_values, module), "module of the function, as in a report",
         "NAME"},
	{"phase", OPTION_TEXT, offsetof(struct annotate_values, phase),
         "use only the time within phases of this name, which may contain * and ?", "NAME", "@phases"},
	{"kernel", OPTION_FILE, offsetof(struct annotate_values, kernel),
         "kernel that ran (default: the path in the recording)", "IMAGE"},
	{"force", OPTION_FLAG, offsetof(struct annotate_values, force),
         "use IMAGE and files even if their build-ids differ", NULL},
	OPTION_ROWS(filter_option_rows, struct annotate_values, filter),
	OPTION_ROWS(filter_event_rows, struct annotate_values, filter),
	OPTION_ROWS(symbol_option_rows, struct annotate_values, symbols),
	{"intel", OPTION_FLAG, offsetof(struct annotate_values, intel), "print Intel syntax instead of AT&T", NULL},
	{"json", OPTION_FLAG, offsetof(struct annotate_values, json), "print one JSON document", NULL},
	{NULL},
};

static void annotate(const struct annotate_values *given, struct input *input, const char *symbol, GError **error)
{
	const struct annotation_options annotation_options = {
		.symbols = &given->symbols,
		.symbol = symbol,
		.module = given->module,
		.kernel = given->kernel,
		.force = given->force,
		.intel = given->intel,
	};
	struct annotation *annotation = annotation_new(input, &annotation_options, error);

	input_say_warnings(input);
	if (!annotation)
		return;
	if (given->json)
		annotation_print_json(annotation, stdout);
	else
		annotation_print_text(annotation, stdout);
	annotation_free(annotation);
}

/* The recording's own symbols already have the KASLR slide; IMAGE is only needed without them. */
static struct input *open_recording(const struct annotate_values *given, const char *path, GError **error)
{
	struct input *input = input_open(path, NULL, given->force, error);

	if (!input || !given->kernel || recording_n_symbols(input->recording) != 0)
		return input;
	input_free(input);
	return input_open(path, given->kernel, given->force, error);
}

static int annotate_run(void *values, unsigned n, char **arguments)
{
	const struct annotate_values *given = values;
	g_autoptr(GError) error = NULL;
	const char *path = given->input;
	struct input *input;

	if (n == 0)
		return usage_error(command_annotate.name, "SYMBOL is missing; `vprof report` lists the functions");
	if (!symbol_options_check(&given->symbols, &error) || !filter_options_check(&given->filter, &error) ||
	    !input_choose(&path, n > 1 ? arguments[1] : NULL, &error))
		return usage_error(command_annotate.name, "%s", error->message);
	input = open_recording(given, path, &error);
	if (!input)
		return failure(error);
	input_take_symbol_options(input, &given->symbols, given->force);
	if (input_select(input, &given->filter, &error) &&
	    (!given->phase || input_select_phase(input, given->phase, &error)))
		annotate(given, input, arguments[0], &error);
	input_free(input);
	return !error ? STATUS_OK : failure(error);
}

const struct command command_annotate = {
	.name = "annotate",
	.summary = "Show which instructions of a function took the time",
	.arguments = "SYMBOL [FILE]",
	.max_arguments = 2,
	.argument_words = {"", "@files"},
	.pages = true,
	.manual = "vprof-annotate",
	.description =

		"Shares are relative to the function's own samples. The code comes from the kernel image, or from\n"
		"a copy of the program or library: in the initramfs of the run, or below --symfs DIR. Source lines\n"
		"are shown where there is debug information, and their text where the source is on this host.\n"
		"\n"
		"Examples:\n"
		"  vprof annotate clear_page_orig --kernel vmlinux\n"
		"  vprof annotate copy_page old.data   in another recording than vprof.data\n"
		"  vprof annotate --symfs / checksum   a program that is at the same path here\n"
		"  vprof annotate --json copy_page | jq '.instructions | max_by(.samples)'",
	.options = options,
	.values_bytes = sizeof(struct annotate_values),
	.run = annotate_run,
};
