// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "compare/comparison_output.h"
#include "export/page.h"
#include "reading/filter.h"
#include "ui/message.h"
#include "ui/text.h"

struct diff_values {
	struct filter_options filter;
	char *html;
	double alpha, min_share;
	char *phase, *event;
	gboolean json, force, shares;
};

static const struct diff_values defaults = {.alpha = 0.01, .min_share = 0.5};

static const struct option_row options[] = {
	{"alpha", OPTION_FRACTION, offsetof(struct diff_values, alpha),
         "error rate of a bound, and of the functions named (default 0.01)", "A"},
	{"min-share", OPTION_PERCENT, offsetof(struct diff_values, min_share),
         "omit functions below P percent of the time in both (default 0.5)", "P"},
	{"phase", OPTION_TEXT, offsetof(struct diff_values, phase),
         "take each occurrence of phase NAME (with * and ?) as a repetition", "NAME", "@phases"},
	{"event", OPTION_TEXT, offsetof(struct diff_values, event),
         "compare recordings by EVENT, e.g. wall, instead of their first event", "EVENT"},
	OPTION_ROWS(filter_option_rows, struct diff_values, filter),
	{"shares", OPTION_FLAG, offsetof(struct diff_values, shares),
         "compare shares of the time, which hides what slows everything equally", NULL},
	{"force", OPTION_FLAG, offsetof(struct diff_values, force),
         "compare even if the recordings were made under different conditions", NULL},
	{"json", OPTION_FLAG, offsetof(struct diff_values, json), "print one JSON document", NULL},
	{"html", OPTION_FILE, offsetof(struct diff_values, html),
         "write an HTML page with one flame graph of two recordings instead; of a folder, the one with the median time",
         "FILE"},
	{NULL},
};

static bool comparable(const struct diff_values *given, const struct measured *base, const struct measured *now,
                       GError **error)
{
	g_autoptr(GError) why = NULL;

	if (measured_comparable(base, now, &why))
		return true;
	if (!given->force) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_INCOMPARABLE, "%s; --force compares them anyway",
		            why->message);
		return false;
	}
	warn("%s", why->message);
	return true;
}

static bool same_unit(const struct measured *base, const struct measured *now)
{
	return strcmp(base->measurements->unit, now->measurements->unit) == 0;
}

/* Different units cannot be compared, with --force or without. */
static bool unit_check(const struct measured *base, const struct measured *now, GError **error)
{
	if (same_unit(base, now))
		return true;
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_INCOMPARABLE,
	            "%s is in %s and %s in %s; --shares compares shares of them", base->path, base->measurements->unit,
	            now->path, now->measurements->unit);
	return false;
}

static struct compared compare(const struct diff_values *given, const struct measured *base, const struct measured *now)
{
	struct compared compared = {
		.base = base,
		.now = now,
		.options = {.alpha = given->alpha, .min_share = given->min_share / 100},
	};

	compared.comparison = comparison_new(base->measurements, now->measurements, &compared.options);
	return compared;
}

static void print(const struct diff_values *given, const struct measured *base, const struct measured *now,
                  json_t *documents)
{
	struct compared compared = compare(given, base, now);

	if (given->json)
		json_array_append_new(documents, compared_json(&compared));
	else
		compared_print_text(&compared, stdout);
	comparison_free(compared.comparison);
}

static struct measured *load(const struct diff_values *given, const char *path, GError **error)
{
	struct measured *measured = measured_load(path, given->phase, given->event, &given->filter, error);

	if (measured && given->shares)
		measurements_to_shares(measured->measurements);
	return measured;
}

static bool compare_with(const struct diff_values *given, const struct measured *base, const char *path,
                         json_t *documents, GError **error)
{
	struct measured *now = load(given, path, error);
	bool good = now && comparable(given, base, now, error) && unit_check(base, now, error);

	if (good)
		print(given, base, now, documents);
	measured_free(now);
	return good;
}

static void print_documents(json_t *documents)
{
	json_t *all = json_pack("{s:s, s:i, s:O}", "format", "vprof-diff", "version", COMPARED_JSON_VERSION,
	                        "comparisons", documents);

	text_print_json(all, 9, stdout);
	json_decref(all);
}

static bool pageable(const struct measured *measured, GError **error)
{
	if (!measured->typical)
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT,
		            "%s: --html takes recordings; measurements have no call chains", measured->path);
	return measured->typical != NULL;
}

/* With only the time that is compared: without warm-ups and what lies between repetitions. */
static struct input *page_input(const struct diff_values *given, const struct measured *measured, GError **error)
{
	struct input *input = input_open(measured->typical, NULL, false, error);
	const char *phase = given->phase ? given->phase : measured_repetitions(input ? input->description : NULL);

	if (!input)
		return NULL;
	if (input_select(input, &given->filter, error) && (!phase || input_select_phase(input, phase, error)))
		return input;
	input_free(input);
	return NULL;
}

static bool write_page(const struct diff_values *given, const struct measured *base_measured,
                       const struct measured *now_measured, const struct comparison *comparison, GError **error)
{
	const struct page_comparison compared = {comparison, base_measured->measurements->n_repetitions,
	                                         now_measured->measurements->n_repetitions};
	struct input *base = page_input(given, base_measured, error);
	struct input *now = base ? page_input(given, now_measured, error) : NULL;
	bool written = now && page_write(base, now, comparison ? &compared : NULL, given->html, error);

	if (written) {
		input_say_warnings(base);
		input_say_warnings(now);
	}
	input_free(base);
	input_free(now);
	return written;
}

/* Makes the same checks as a comparison in text. */
static bool compare_in_page(const struct diff_values *given, const struct measured *base, const char *now_path,
                            GError **error)
{
	struct measured *now = load(given, now_path, error);
	bool good = now && pageable(now, error) && comparable(given, base, now, error) && page_check(error);

	if (good) {
		struct comparison *comparison = same_unit(base, now) ? compare(given, base, now).comparison : NULL;

		good = write_page(given, base, now, comparison, error);
		comparison_free(comparison);
	}
	measured_free(now);
	return good;
}

static int page_run(const struct diff_values *given, unsigned n, char **arguments)
{
	g_autoptr(GError) error = NULL;
	struct measured *base;

	if (n != 2)
		return usage_error(command_diff.name, "--html takes two recordings, or folders of them");
	if (given->json || given->shares || given->event)
		return usage_error(command_diff.name, "--html cannot be combined with --json, --shares and --event");
	base = load(given, arguments[0], &error);
	if (base && pageable(base, &error))
		compare_in_page(given, base, arguments[1], &error);
	measured_free(base);
	return !error ? STATUS_OK : failure(error);
}

static int diff_run(void *values, unsigned n, char **arguments)
{
	const struct diff_values *given = values;
	g_autoptr(GError) error = NULL;
	struct measured *base;
	json_t *documents;

	if (n < 2)
		return usage_error(command_diff.name, "at least two recordings are needed, the base first");
	if (!(given->alpha > 0 && given->alpha < 0.5))
		return usage_error(command_diff.name, "--alpha takes a number between 0 and 0.5");
	if (!(given->min_share >= 0 && given->min_share <= 100))
		return usage_error(command_diff.name, "--min-share takes 0 to 100");
	if (!filter_options_check(&given->filter, &error))
		return usage_error(command_diff.name, "%s", error->message);
	if (given->html)
		return page_run(given, n, arguments);
	base = load(given, arguments[0], &error);
	if (!base)
		return failure(error);
	documents = json_array();
	for (unsigned i = 1; i < n && !error; i++)
		compare_with(given, base, arguments[i], documents, &error);
	if (given->json && !error)
		print_documents(documents);
	json_decref(documents);
	measured_free(base);
	return !error ? STATUS_OK : failure(error);
}

const struct command command_diff = {
	.name = "diff",
	.summary = "Compare profiles: what changed, and what explains it",
	.arguments = "BASE NOW...",
	.max_arguments = 1000,
	.argument_words = {"@files"},
	.pages = true,
	.manual = "vprof-diff",
	.description =

		"BASE and NOW are each a recording with its repetitions, a folder of recordings, or a file of\n"
		"measurements (*.json). Functions are matched by name and module. One repetition on a side is not\n"
		"enough to show anything; the default --alpha needs at least five on each side.\n"
		"\n"
		"Examples:\n"
		"  vprof diff old.data new.data   two recordings of vprof run --exec --repeat\n"
		"  vprof diff old/ new/                two folders of recordings\n"
		"  vprof diff --shares old/ new/       on a machine with a varying speed\n"
		"  vprof diff base.json new.data       what a gate keeps, against a recording\n"
		"  vprof diff --comm nginx --mode user old.data new.data\n"
		"  vprof diff --html diff.html old.data new.data\n"
		"                                      a flame graph of both, for a browser\n"
		"  vprof diff --json old/ new/ | jq '.comparisons[].functions[].name'",
	.options = options,
	.values_bytes = sizeof(struct diff_values),
	.defaults = &defaults,
	.run = diff_run,
};
