// SPDX-License-Identifier: BSD-2-Clause
/* The verdict of a gate for CI pipelines: a job summary, a test report, annotations. */
#include <string.h>

#include "compare/comparison_output.h"
#include "ui/text.h"

/* Text between bars: what Markdown would take for markup is escaped. New string. */
static char *markdown_escape(const char *text)
{
	g_autofree char *printable = text_printable(text);
	GString *escaped = g_string_new(NULL);

	for (const char *c = printable; *c != '\0'; c++) {
		if (strchr("\\`*_{}[]<>()#+!|~", *c))
			g_string_append_c(escaped, '\\');
		g_string_append_c(escaped, *c);
	}
	return g_string_free(escaped, FALSE);
}

static void markdown_metrics(const struct gate_result *result, FILE *to)
{
	fputs("| metric | baseline | now | change | bounds | verdict |\n|---|---:|---:|---:|---|---|\n", to);
	for (size_t i = 0; i < result->n_watched; i++) {
		const struct watched *watched = &result->watched[i];
		g_autofree char *name = markdown_escape(watched->name),
				*base = value_text(watched->base_median, watched->unit),
				*now = value_text(watched->now_median, watched->unit),
				*ratio = ratio_text(watched->judgement.ratio),
				*low = ratio_text(watched->judgement.ratio_low),
				*high = ratio_text(watched->judgement.ratio_high);

		fprintf(to, "| %s | %s | %s | %s | %s to %s | %s |\n", name, base, now, ratio, low, high,
		        verdict_name(watched->judgement.verdict));
	}
}

static void markdown_rows(const char *title, const struct change *changes, size_t n, bool only_standing, FILE *to)
{
	bool titled = false;

	for (size_t i = 0; i < n; i++) {
		const struct change *change = &changes[i];
		const struct series *series = change_series(change);
		g_autofree char *printable = change_name(change), *name = markdown_escape(printable),
				*base = value_text(change->base_median, series->unit),
				*now = value_text(change->now_median, series->unit);

		if (only_standing && !change->stands)
			continue;
		if (!titled)
			fprintf(to, "\n| %s | mode | baseline | now |\n|---|---|---:|---:|\n", title);
		titled = true;
		fprintf(to, "| %s | %s | %s | %s |\n", name, profile_mode_name(series->mode), base, now);
	}
}

static void markdown_functions(const struct comparison *comparison, FILE *to)
{
	markdown_rows("function", comparison->functions, comparison->n_functions, true, to);
	if (comparison->n_standing != 0)
		fprintf(to, "\nTogether they make %.0f %% of the change.\n", comparison->explained * 100);
	for (enum fate fate = FATE_RENAMED; fate <= FATE_GONE; fate++) {
		size_t n;
		const struct change *changes = comparison_only(comparison, fate, &n);

		markdown_rows(fate_title(fate), changes, n, false, to);
	}
}

void gate_print_markdown(const struct gate_result *result, FILE *to)
{
	fprintf(to, "### vprof gate: %s\n\n", verdict_name(result->verdict));
	markdown_metrics(result, to);
	markdown_functions(result->compared.comparison, to);
	fprintf(to,
	        "\nRepetitions: %zu against %zu. %g %% are allowed; the verdict is wrong at most %g %% of the time.\n",
	        result->compared.now->measurements->n_repetitions, result->compared.base->measurements->n_repetitions,
	        result->max_regression * 100, result->alpha * 100);
}

static size_t count_verdicts(const struct gate_result *result, enum verdict verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < result->n_watched; i++)
		n += result->watched[i].judgement.verdict == verdict;
	return n;
}

/* The dialect that CI servers read (Jenkins' junit-10.xsd): a metric is a test case. An undecided metric is an error.
 */
void gate_print_junit(const struct gate_result *result, FILE *to)
{
	size_t failures = count_verdicts(result, VERDICT_REGRESSED), errors = count_verdicts(result, VERDICT_UNDECIDED);

	fprintf(to,
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	        "<testsuites>\n<testsuite name=\"vprof gate\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
	        result->n_watched, failures, errors);
	for (size_t i = 0; i < result->n_watched; i++) {
		const struct watched *watched = &result->watched[i];
		g_autofree char *sentence = watched_sentence(watched, result), *name = text_markup(watched->name),
				*text = text_markup(sentence);

		fprintf(to, "<testcase classname=\"vprof.gate\" name=\"%s\">", name);
		if (watched->judgement.verdict == VERDICT_REGRESSED)
			fprintf(to, "<failure type=\"regression\" message=\"%s\"/>", text);
		else if (watched->judgement.verdict == VERDICT_UNDECIDED)
			fprintf(to, "<error type=\"undecided\" message=\"%s\"/>", text);
		fputs("</testcase>\n", to);
	}
	fputs("</testsuite>\n</testsuites>\n", to);
}

/* github.com, "Workflow commands for GitHub Actions": data escapes %, CR and LF; control characters are gone before. */
static void github_print(const char *level, const char *sentence, FILE *to)
{
	g_autofree char *printable = text_printable(sentence);

	fprintf(to, "::%s title=vprof gate::", level);
	for (const char *c = printable; *c != '\0'; c++)
		if (*c == '%')
			fputs("%25", to);
		else
			fputc(*c, to);
	fputc('\n', to);
}

void gate_print_github(const struct gate_result *result, FILE *to)
{
	static const char *const levels[] = {
		[VERDICT_GOOD] = "notice",
		[VERDICT_REGRESSED] = "error",
		[VERDICT_UNDECIDED] = "warning",
	};

	for (size_t i = 0; i < result->n_watched; i++) {
		g_autofree char *sentence = watched_sentence(&result->watched[i], result);

		github_print(levels[result->watched[i].judgement.verdict], sentence, to);
	}
}
