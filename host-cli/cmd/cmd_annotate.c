// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/annotation.h"
#include "cmd/command.h"
#include "reading/symbol_options.h"
#include "ui/message.h"

static struct {
	char *input, *kernel, *module, *phase;
	gboolean json, force, intel;
} given;

static const GOptionEntry options[] = {
	{"input", 'i', 0, G_OPTION_ARG_FILENAME, &given.input, "recording to read (default " INPUT_DEFAULT_PATH ")",
         "FILE"},
	{"module", 'm', 0, G_OPTION_ARG_STRING, &given.module, "the module that the function is in, as a report has it",
         "NAME"},
	{"phase", 'p', 0, G_OPTION_ARG_STRING, &given.phase,
         "only the time within phases of this name, which may have * and ? in it", "NAME"},
	{"kernel", 'k', 0, G_OPTION_ARG_FILENAME, &given.kernel,
         "the kernel that ran (default: where the recording says it was)", "IMAGE"},
	{"force", 'f', 0, G_OPTION_ARG_NONE, &given.force, "use IMAGE and files even if their build-ids are others",
         NULL},
	SYMBOL_OPTIONS,
	{"intel", 0, 0, G_OPTION_ARG_NONE, &given.intel, "Intel's syntax, not AT&T's", NULL},
	{"json", 'j', 0, G_OPTION_ARG_NONE, &given.json, "print one JSON document", NULL},
	{NULL},
};

static void annotate(struct input *input, const char *symbol, GError **error)
{
	const struct annotation_options annotation_options = {
		.symbol = symbol,
		.module = given.module,
		.kernel = given.kernel,
		.force = given.force,
		.intel = given.intel,
	};
	struct annotation *annotation = annotation_new(input, &annotation_options, error);

	input_say_warnings(input);
	if (annotation == NULL)
		return;
	if (given.json)
		annotation_print_json(annotation, stdout);
	else
		annotation_print_text(annotation, stdout);
	annotation_free(annotation);
}

/* With the recording's own symbols, which are where KASLR had put them, unless it has none. */
static struct input *open_recording(const char *path, GError **error)
{
	struct input *input = input_open(path, NULL, given.force, error);

	if (input == NULL || given.kernel == NULL || recording_n_symbols(input->recording) != 0)
		return input;
	input_free(input);
	return input_open(path, given.kernel, given.force, error);
}

static int annotate_run(unsigned n, char **arguments)
{
	g_autoptr(GError) error = NULL;
	const char *path = given.input;
	struct input *input;

	if (n == 0)
		return usage_error(command_annotate.name, "which function? `vprof report` lists them");
	if (!symbol_options_check(&error) || !input_choose(&path, n > 1 ? arguments[1] : NULL, &error))
		return usage_error(command_annotate.name, "%s", error->message);
	input = open_recording(path, &error);
	if (input == NULL)
		return failure(error);
	input_take_symbol_options(input, given.force);
	if (given.phase == NULL || input_select_phase(input, given.phase, &error))
		annotate(input, arguments[0], &error);
	input_free(input);
	return error == NULL ? STATUS_OK : failure(error);
}

const struct command command_annotate = {
	.name = "annotate",
	.summary = "Show which instructions of a function took the time",
	.arguments = "SYMBOL [FILE]",
	.max_arguments = 2,
	.manual = "vprof-annotate",
	.description =
		"Shares are of the function's own samples. Code comes from the kernel's image, or from a copy of the "
		"program\n"
		"or library: in the run's initramfs, or below --symfs DIR. Source lines are shown where there is "
		"debug\n"
		"information, their text where the source is on this host.\n"
		"\n"
		"Examples:\n"
		"  vprof annotate clear_page_orig --kernel vmlinux\n"
		"  vprof annotate copy_page old.data   in another recording than vprof.data\n"
		"  vprof annotate --symfs / checksum   a program that is at the same path here\n"
		"  vprof annotate --json copy_page | jq '.instructions | max_by(.samples)'",
	.options = options,
	.run = annotate_run,
};
