// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "compare/comparison_output.h"
#include "export/export.h"
#include "lib/record/text.h"
#include "reading/filter.h"
#include "ui/message.h"
#include "ui/output_file.h"
#include "ui/text.h"

/* Exit statuses for pipelines: vprof-gate(1). */
enum { GATE_GOOD = 0, GATE_REGRESSED = 1, GATE_UNDECIDED = 2, GATE_BAD_INPUT = 3 };

#define DEFAULT_METRIC "guest"
#define MIN_SHARE 0.005

struct gate_values {
	struct filter_options filter;
	char *baseline, *max_regression, *markdown, *junit, *html, *phase, *event;
	char **metrics, **throughputs;
	double alpha;
	gboolean json, github, update;
};

static const struct gate_values defaults = {.alpha = 0.01};

static const struct option_row options[] = {
	{"baseline", OPTION_FILE, offsetof(struct gate_values, baseline),
         "what to compare with: measurements (*.json), a recording, or a folder of them", "PATH"},
	{"max-regression", OPTION_TEXT, offsetof(struct gate_values, max_regression),
         "how much worse a metric may get (default 3%)", "P%"},
	{"metric", OPTION_TEXTS, offsetof(struct gate_values, metrics),
         "judge NAME, of vprof or printed by the command (default " DEFAULT_METRIC "); may be repeated", "NAME"},
	{"throughput", OPTION_TEXTS, offsetof(struct gate_values, throughputs),
         "judge NAME, where more is better; may be repeated", "NAME"},
	{"phase", OPTION_TEXT, offsetof(struct gate_values, phase),
         "take each occurrence of phase NAME (with * and ?) as a repetition", "NAME", "@phases"},
	{"event", OPTION_TEXT, offsetof(struct gate_values, event),
         "compare recordings by EVENT, e.g. wall, instead of their first event", "EVENT"},
	OPTION_ROWS(filter_option_rows, struct gate_values, filter),
	{"alpha", OPTION_FRACTION, offsetof(struct gate_values, alpha), "error rate of the verdicts (default 0.01)",
         "A"},
	{"update-baseline", OPTION_FLAG, offsetof(struct gate_values, update),
         "write NOW's measurements to --baseline (a *.json) if it is missing or NOW is good", NULL},
	{"json", OPTION_FLAG, offsetof(struct gate_values, json), "print one JSON document", NULL},
	{"github", OPTION_FLAG, offsetof(struct gate_values, github), "print annotations for GitHub Actions", NULL},
	{"markdown", OPTION_FILE, offsetof(struct gate_values, markdown),
         "append a summary in Markdown to FILE (-: stdout)", "FILE"},
	{"junit", OPTION_FILE, offsetof(struct gate_values, junit), "write a JUnit test report to FILE (-: stdout)",
         "FILE"},
	{"html", OPTION_FILE, offsetof(struct gate_values, html),
         "write a page with plots of the repetitions and flame graphs to FILE (-: stdout)", "FILE"},
	{NULL},
};

static int bad_input(const GError *error)
{
	failure(error);
	return GATE_BAD_INPUT;
}

/* "3%" or "3": percent, 0 and more. */
static bool percent_parse(const char *text, double *part, GError **error)
{
	char *end;
	double percent = g_ascii_strtod(text, &end);

	if (end == text || (*end != '\0' && strcmp(end, "%") != 0) || !(percent >= 0 && percent <= 1000)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
		            "--max-regression takes 0 to 1000 percent, not \"%s\"", text);
		return false;
	}
	*part = percent / 100;
	return true;
}

static bool positive(const struct series *series, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(series->values[i] > 0))
			return false;
	return true;
}

static double *reciprocals(const double *values, size_t n)
{
	double *results = g_new(double, n);

	for (size_t i = 0; i < n; i++)
		results[i] = 1 / values[i];
	return results;
}

static struct judgement judge_times(const double *base, size_t n_base, const double *now, size_t n_now,
                                    const struct gate_result *result)
{
	return judge(base, n_base, now, n_now, result->max_regression, result->alpha);
}

/* Throughput is the reciprocal of the time per unit of work, and the time is what is judged. */
static struct judgement judge_throughput(const double *base, size_t n_base, const double *now, size_t n_now,
                                         const struct gate_result *result)
{
	g_autofree double *base_times = reciprocals(base, n_base), *now_times = reciprocals(now, n_now);
	struct judgement judgement = judge_times(base_times, n_base, now_times, n_now, result);
	double low = judgement.ratio_low;

	judgement.ratio = 1 / judgement.ratio;
	judgement.ratio_low = 1 / judgement.ratio_high;
	judgement.ratio_high = 1 / low;
	return judgement;
}

static struct judgement judge_metric(const struct gate_result *result, const struct series *base,
                                     const struct series *now, bool more_is_better)
{
	const struct measurements *base_set = result->compared.base->measurements;
	const struct measurements *now_set = result->compared.now->measurements;

	if (measurements_exact(base_set, base) && measurements_exact(now_set, now))
		return judge_exact(base->values[0], now->values[0], result->max_regression);
	return (more_is_better ? judge_throughput : judge_times)(base->values, base_set->n_repetitions, now->values,
	                                                         now_set->n_repetitions, result);
}

static bool watch_metric(struct gate_result *result, const char *name, bool more_is_better, struct watched *watched,
                         GError **error)
{
	const struct measurements *base_set = result->compared.base->measurements;
	const struct measurements *now_set = result->compared.now->measurements;
	const struct series *base = measurements_metric(base_set, name), *now = measurements_metric(now_set, name);

	if (!base || !now || !positive(base, base_set->n_repetitions) || !positive(now, now_set->n_repetitions)) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_EMPTY,
		            "metric \"%s\" was not measured in every repetition of %s", name,
		            !base || !positive(base, base_set->n_repetitions) ? result->compared.base->path
		                                                              : result->compared.now->path);
		return false;
	}
	if (strcmp(base->unit, now->unit) != 0) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_INCOMPARABLE,
		            "metric \"%s\" is in \"%s\" in %s and in \"%s\" in %s", name, base->unit,
		            result->compared.base->path, now->unit, result->compared.now->path);
		return false;
	}
	*watched = (struct watched){
		.name = base->name,
		.unit = base->unit,
		.more_is_better = more_is_better,
		.base_median = shift_median(base->values, base_set->n_repetitions),
		.now_median = shift_median(now->values, now_set->n_repetitions),
		.judgement = judge_metric(result, base, now, more_is_better),
	};
	return true;
}

/* One regression decides; otherwise one undecided metric does. */
static enum verdict verdict_of_all(const struct gate_result *result)
{
	enum verdict verdict = VERDICT_GOOD;

	for (size_t i = 0; i < result->n_watched && verdict != VERDICT_REGRESSED; i++)
		if (result->watched[i].judgement.verdict != VERDICT_GOOD)
			verdict = result->watched[i].judgement.verdict;
	return verdict;
}

static bool watch_metrics(struct gate_result *result, char *const *names, bool more_is_better, GError **error)
{
	for (size_t i = 0; names[i]; i++, result->n_watched++) {
		/* As those of measurements are. */
		g_autofree char *name = text_printable(names[i]);

		if (!watch_metric(result, name, more_is_better, &result->watched[result->n_watched], error))
			return false;
	}
	return true;
}

static bool gate_judge(const struct gate_values *given, struct gate_result *result, GError **error)
{
	static char *const none[] = {NULL}, *const by_default[] = {(char *)DEFAULT_METRIC, NULL};

	char *const *throughputs = given->throughputs ? given->throughputs : none;
	char *const *metrics = given->metrics ? given->metrics : throughputs != none ? none : by_default;

	result->watched = g_new(struct watched, g_strv_length((char **)metrics) + g_strv_length((char **)throughputs));
	if (!watch_metrics(result, metrics, false, error) || !watch_metrics(result, throughputs, true, error))
		return false;
	result->verdict = verdict_of_all(result);
	return true;
}

static bool write_markdown(FILE *to, const void *result, GError **error)
{
	(void)error;
	gate_print_markdown(result, to);
	return true;
}

static bool write_junit(FILE *to, const void *result, GError **error)
{
	(void)error;
	gate_print_junit(result, to);
	return true;
}

/* Of what was measured: the same event and phases, of a recording the repetitions. */
static bool input_draw(struct input *input, const struct measured *measured, FILE *to)
{
	const char *phase = member_text(measured->conditions, "phase");
	const int event = input_event_number(input, member_text(measured->conditions, "event"), NULL);
	struct export_profile profile;
	bool drawn;

	if (!phase)
		phase = measured_repetitions(input->description);
	if (event < 0 || !input_select(input, measured->filter, NULL) ||
	    (phase && !input_select_phase(input, phase, NULL)))
		return false;
	export_profile_read(&profile, &export_svg, input, (unsigned)event, input_waits_number(input, event));
	drawn = export_svg.write(&profile, to, NULL);
	export_profile_clear(&profile);
	return drawn;
}

static bool flames_draw(const struct measured *measured, FILE *to)
{
	struct input *input = measured->typical ? input_open(measured->typical, NULL, false, NULL) : NULL;
	bool drawn;

	if (!input)
		return false;
	drawn = input_draw(input, measured, to);
	input_free(input);
	return drawn;
}

static bool write_html(FILE *to, const void *result, GError **error)
{
	(void)error;
	gate_print_html(result, flames_draw, to);
	return true;
}

static bool gate_report(const struct gate_values *given, const struct gate_result *result, GError **error)
{
	const mode_t mode = result->compared.base->mode & result->compared.now->mode;

	if (given->json)
		gate_print_json(result, stdout);
	else if (given->github)
		gate_print_github(result, stdout);
	else
		gate_print_text(result, stdout);
	return (!given->markdown || output_file_append(given->markdown, write_markdown, result, error)) &&
	       (!given->junit || output_file_write(given->junit, 0666, write_junit, result, error)) &&
	       (!given->html || output_file_write(given->html, mode, write_html, result, error));
}

static int status_of(enum verdict verdict)
{
	static const int statuses[] = {
		[VERDICT_GOOD] = GATE_GOOD,
		[VERDICT_REGRESSED] = GATE_REGRESSED,
		[VERDICT_UNDECIDED] = GATE_UNDECIDED,
	};

	return statuses[verdict];
}

/* `what`: why its contents change. */
static bool baseline_save(const struct gate_values *given, const struct measured *now, const char *what, GError **error)
{
	size_t n = now->measurements->n_repetitions;

	if (!measured_save(now, given->baseline, error))
		return false;
	say("%s %s; it now holds the %zu repetition%s of %s", given->baseline, what, n, n == 1 ? "" : "s", now->path);
	return true;
}

/*
 * Only a run that is shown not to be worse becomes the baseline. A baseline that followed undecided runs could get a
 * little slower with each of them, without any of them being a regression.
 */
static bool baseline_update(const struct gate_values *given, const struct gate_result *result, GError **error)
{
	if (result->verdict == VERDICT_GOOD)
		return baseline_save(given, result->compared.now, "was replaced", error);
	say("%s is unchanged; remove it to let the next --update-baseline create it anew", given->baseline);
	return true;
}

static int gate_compare(const struct gate_values *given, struct gate_result *result)
{
	g_autoptr(GError) error = NULL;
	bool done = measured_comparable(result->compared.base, result->compared.now, &error) &&
	            gate_judge(given, result, &error);

	if (done) {
		result->compared.comparison =
			comparison_new(result->compared.base->measurements, result->compared.now->measurements,
		                       &result->compared.options);
		done = gate_report(given, result, &error);
		comparison_free(result->compared.comparison);
	}
	if (done && given->update)
		done = baseline_update(given, result, &error);
	g_free(result->watched);
	return done ? status_of(result->verdict) : bad_input(error);
}

/* The first run of a pipeline has no baseline yet. */
static int gate_first(const struct gate_values *given, const struct measured *now)
{
	g_autoptr(GError) error = NULL;

	return baseline_save(given, now, "did not exist", &error) ? GATE_GOOD : bad_input(error);
}

static int gate_with(const struct gate_values *given, const struct measured *now, double max_regression)
{
	g_autoptr(GError) error = NULL;
	struct gate_result result = {
		.compared = {.now = now, .options = {.alpha = given->alpha, .min_share = MIN_SHARE}},
		.max_regression = max_regression,
		.alpha = given->alpha,
	};
	struct measured *base;
	int status;

	if (given->update && !g_file_test(given->baseline, G_FILE_TEST_EXISTS))
		return gate_first(given, now);
	base = measured_load(given->baseline, given->phase, given->event, &given->filter, &error);
	if (!base)
		return bad_input(error);
	result.compared.base = base;
	status = gate_compare(given, &result);
	measured_free(base);
	return status;
}

static bool options_check(const struct gate_values *given, double *max_regression, GError **error)
{
	const char *why = NULL;

	if (!given->baseline)
		why = "--baseline PATH is needed; --update-baseline creates one";
	else if (!(given->alpha > 0 && given->alpha < 0.5))
		why = "--alpha takes a number between 0 and 0.5";
	else if (given->update && !g_str_has_suffix(given->baseline, ".json"))
		why = "--update-baseline needs a --baseline that ends in .json";
	if (why)
		g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, why);
	return !why && filter_options_check(&given->filter, error) &&
	       percent_parse(given->max_regression ? given->max_regression : "3", max_regression, error);
}

static int gate_run(void *values, unsigned n, char **arguments)
{
	const struct gate_values *given = values;
	g_autoptr(GError) error = NULL;
	double max_regression;
	struct measured *now;
	int status;

	if (n != 1 || !options_check(given, &max_regression, &error)) {
		usage_error(command_gate.name, "%s",
		            n != 1 ? "one recording, folder or *.json is needed" : error->message);
		return GATE_BAD_INPUT;
	}
	now = measured_load(arguments[0], given->phase, given->event, &given->filter, &error);
	if (!now)
		return bad_input(error);
	status = gate_with(given, now, max_regression);
	measured_free(now);
	return status;
}

const struct command command_gate = {
	.name = "gate",
	.summary = "Decide whether a new build is slower than a baseline",
	.arguments = "NOW",
	.max_arguments = 1,
	.argument_words = {"@files"},
	.usage_status = GATE_BAD_INPUT,
	.manual = "vprof-gate",
	.description =

		"Exit status: 0 not worse than --max-regression allows, 1 a regression, 2 undecided (vprof prints\n"
		"how many repetitions it would take), 3 bad input. The baseline and NOW are recordings with\n"
		"repetitions, folders of recordings, or measurements that an earlier --update-baseline has\n"
		"written.\n"
		"\n"
		"Examples:\n"
		"  vprof run --kernel vmlinux --exec ./bench --repeat 10 --warmup 2 -o new.data\n"
		"  vprof gate -b base.json -u new.data   the first run makes the baseline\n"
		"  vprof gate -b base.json --max-regression 5% new.data\n"
		"  vprof gate -b base.json --metric p99 --throughput requests new.data\n"
		"  vprof gate -b base.json --markdown \"$GITHUB_STEP_SUMMARY\" new.data\n"
		"  vprof gate -b base.json --html gate.html new.data",
	.options = options,
	.values_bytes = sizeof(struct gate_values),
	.defaults = &defaults,
	.run = gate_run,
};
