// SPDX-License-Identifier: BSD-2-Clause
/* The verdict of a gate as a page for people: an artifact of a pipeline that any browser shows. */
#include <math.h>

#include "compare/comparison_output.h"
#include "compare/html_plot.h"
#include "lib/profile/shift.h"
#include "ui/text.h"

/* Of a plot, in px. */
#define WIDTH 720.0
#define LEFT 90.0
#define RIGHT 20.0
#define ROW 34.0
#define SPREAD 9u /* dots beside each other, so that equal values are all seen */

/* ---- the repetitions of a metric ---- */

static void dots(const struct series *series, size_t n, const char *class, const struct plot_scale *scale, double y,
                 FILE *to)
{
	const double median = plot_place(scale, shift_median(series->values, n));

	plot_words(LEFT - 12, y + 4, "end", class, to);
	for (size_t i = 0; i < n; i++) {
		g_autofree char *text = value_text(series->values[i], series->unit);

		plot_dot(class, plot_place(scale, series->values[i]), y - 8 + (double)(i % SPREAD) * 2, 3, text, to);
	}
	plot_line("median", median, y - 12, median, y + 12, to);
}

static void repetitions(const struct watched *watched, const struct gate_result *result, FILE *to)
{
	const struct measurements *sets[] = {result->compared.base->measurements, result->compared.now->measurements};
	static const char *const classes[] = {"base", "now"};
	struct plot_scale scale = plot_scale_new(LEFT, WIDTH - RIGHT);
	const struct series *series[2];

	for (size_t i = 0; i < G_N_ELEMENTS(sets); i++) {
		series[i] = measurements_metric(sets[i], watched->name);
		for (size_t j = 0; j < sets[i]->n_repetitions; j++)
			plot_scale_take(&scale, series[i]->values[j]);
	}
	g_autofree char *low = value_text(scale.low, watched->unit), *high = value_text(scale.high, watched->unit);

	plot_begin("each repetition, and the medians", WIDTH, 2 * ROW + 24, to);
	for (size_t i = 0; i < G_N_ELEMENTS(sets); i++)
		dots(series[i], sets[i]->n_repetitions, classes[i], &scale, ROW * ((double)i + 0.5), to);
	plot_line("axis", LEFT, 2 * ROW + 4, WIDTH - RIGHT, 2 * ROW + 4, to);
	plot_words(LEFT, 2 * ROW + 19, "start", low, to);
	plot_words(WIDTH - RIGHT, 2 * ROW + 19, "end", high, to);
	plot_end(to);
}

/* ---- its change ---- */

/* Without bounds the interval ends at the edges. */
static void interval(const struct watched *watched, const struct gate_result *result, FILE *to)
{
	const struct judgement *judgement = &watched->judgement;
	const double limit = watched->more_is_better ? 1 / (1 + result->max_regression) : 1 + result->max_regression;
	struct plot_scale scale = plot_scale_new(LEFT, WIDTH - RIGHT);
	g_autofree char *ratio = ratio_text(judgement->ratio), *allowed = ratio_text(limit);

	plot_scale_take(&scale, 1);
	plot_scale_take(&scale, limit);
	plot_scale_take(&scale, judgement->ratio);
	if (!judgement->exact && judgement->ratio_low > 0)
		plot_scale_take(&scale, judgement->ratio_low);
	if (!judgement->exact)
		plot_scale_take(&scale, judgement->ratio_high);
	plot_scale_pad(&scale, 0.1, 0.001);
	plot_begin("the change and its interval, and what is allowed", WIDTH, ROW + 24, to);
	plot_words(LEFT - 12, ROW / 2 + 4, "end", "change", to);
	if (!judgement->exact)
		plot_line("bounds", plot_place(&scale, judgement->ratio_low), ROW / 2,
		          isfinite(judgement->ratio_high) ? plot_place(&scale, judgement->ratio_high) : WIDTH - RIGHT,
		          ROW / 2, to);
	plot_line("median", plot_place(&scale, judgement->ratio), 4, plot_place(&scale, judgement->ratio), ROW - 4, to);
	plot_line("axis", plot_place(&scale, 1), 0, plot_place(&scale, 1), ROW + 4, to);
	plot_line("limit", plot_place(&scale, limit), 0, plot_place(&scale, limit), ROW + 4, to);
	plot_words(plot_place(&scale, judgement->ratio), ROW + 19, "middle", ratio, to);
	if (fabs(plot_place(&scale, limit) - plot_place(&scale, judgement->ratio)) > 110) {
		g_autofree char *text = g_strdup_printf("%s allowed", allowed);

		plot_words(plot_place(&scale, limit), ROW + 19, "middle", text, to);
	}
	plot_end(to);
}

/* ---- functions ---- */

static void row(const struct change *change, double total, FILE *to)
{
	const struct series *series = change_series(change);
	const double moved = change->now_median - change->base_median;
	g_autofree char *printable = change_name(change), *name = text_markup(printable),
			*base = value_text(change->base_median, series->unit),
			*now = value_text(change->now_median, series->unit);

	fprintf(to, "<tr%s><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%+.2f</td></tr>\n",
	        change->stands ? "" : " class=\"dim\"", name, profile_mode_name(series->mode), base, now,
	        total > 0 ? 100 * moved / total : 0);
}

static void rows(const char *title, const struct change *changes, size_t n, double total, FILE *to)
{
	g_autofree char *markup = text_markup(title);

	if (n == 0)
		return;
	fprintf(to,
	        "<table><caption>%s</caption><thead><tr><th>function</th><th>mode</th><th>base</th><th>now</th>"
	        "<th>points</th></tr></thead><tbody>\n",
	        markup);
	for (size_t i = 0; i < n; i++)
		row(&changes[i], total, to);
	fputs("</tbody></table>\n", to);
}

/* Those that stand first, as they come. */
static void functions(const struct gate_result *result, FILE *to)
{
	const struct comparison *comparison = result->compared.comparison;
	const double total = comparison->n_metrics > 0 ? comparison->metrics[0].base_median : 0;

	fputs("<h2>Functions</h2>\n<p class=\"dim\">Points are percent of the base's time. Faded: may be chance.", to);
	if (comparison->n_standing != 0)
		fprintf(to, " The others make %.0f %% of the change.", comparison->explained * 100);
	fputs("</p>\n", to);
	rows("in both", comparison->functions, comparison->n_functions, total, to);
	for (enum fate fate = FATE_RENAMED; fate <= FATE_GONE; fate++) {
		size_t n;
		const struct change *changes = comparison_only(comparison, fate, &n);

		rows(fate_title(fate), changes, n, total, to);
	}
}

/* ---- the page ---- */

static void metric(const struct watched *watched, const struct gate_result *result, FILE *to)
{
	g_autofree char *sentence = watched_sentence(watched, result), *text = text_markup(sentence),
			*name = text_markup(watched->name);
	const enum verdict verdict = watched->judgement.verdict;

	fprintf(to, "<h2>%s <span class=\"%s\">%s</span></h2>\n<p>%s</p>\n", name, verdict_name(verdict),
	        verdict_name(verdict), text);
	repetitions(watched, result, to);
	interval(watched, result, to);
}

static void flame_graph(const char *title, const struct measured *measured, gate_flames *flames, FILE *to)
{
	g_autofree char *path = text_markup(measured->path);

	fprintf(to, "<h2>%s: %s</h2>\n", title, path);
	if (!flames(measured, to))
		fputs("<p class=\"dim\">No flame graph: measurements have no call chains.</p>\n", to);
}

void gate_print_html(const struct gate_result *result, gate_flames *flames, FILE *to)
{
	const struct measured *base = result->compared.base, *now = result->compared.now;
	g_autofree char *base_path = text_markup(base->path), *now_path = text_markup(now->path);

	html_page_begin("vprof gate", to);
	fprintf(to,
	        "<h1>vprof gate: <span class=\"%s\">%s</span></h1>\n"
	        "<p>%s (now, %zu repetition%s) against %s (base, %zu repetition%s). %g %% are allowed; the verdict is wrong "
	        "at most %g %% of the time.</p>\n",
	        verdict_name(result->verdict), verdict_name(result->verdict), now_path,
	        now->measurements->n_repetitions, now->measurements->n_repetitions == 1 ? "" : "s", base_path,
	        base->measurements->n_repetitions, base->measurements->n_repetitions == 1 ? "" : "s",
	        result->max_regression * 100, result->alpha * 100);
	for (size_t i = 0; i < result->n_watched; i++)
		metric(&result->watched[i], result, to);
	functions(result, to);
	flame_graph("Base", base, flames, to);
	flame_graph("Now", now, flames, to);
	html_page_end(to);
}
