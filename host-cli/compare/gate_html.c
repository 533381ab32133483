// SPDX-License-Identifier: BSD-2-Clause
/* The verdict of a gate as a page for people: an artifact of a pipeline that any browser shows. */
#include <math.h>

#include "compare/comparison_output.h"
#include "lib/profile/shift.h"
#include "ui/text.h"

/* Of a plot, in px. */
#define WIDTH 720.0
#define LEFT 90.0
#define RIGHT 20.0
#define ROW 34.0
#define SPREAD 9u /* dots beside each other, so that equal values are all seen */

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"viewport\" content=\"width=device-width\"><title>vprof gate</title>\n<style>\n"
	":root{color-scheme:light dark;--good:#14692c;--bad:#b3261e;--open:#805600;--dim:#595959;--line:#999;--base:#595959;"
	"--now:#0b57a4}\n"
	"@media(prefers-color-scheme:dark){:root{--good:#7fd898;--bad:#ffb4ab;--open:#f2c05c;--dim:#b0b0b0;--line:#777;"
	"--base:#b0b0b0;--now:#8ec2ff}}\n"
	"body{font:15px/1.5 system-ui,sans-serif;max-width:78rem;margin:2rem auto;padding:0 1rem}\n"
	"table{border-collapse:collapse}td,th{padding:.15rem .8rem;text-align:right;border-bottom:1px solid var(--line)}\n"
	"td:first-child,th:first-child{text-align:left}h2{margin-top:2.5rem}svg{max-width:100%;height:auto}\n"
	".good{color:var(--good)}.regression{color:var(--bad)}.undecided{color:var(--open)}.dim{color:var(--dim)}\n"
	".plot text{fill:currentColor;font-size:12px}.plot line,.plot path{stroke:var(--line)}\n"
	".base{fill:var(--base)}.now{fill:var(--now)}.plot .median{stroke:currentColor;stroke-width:2}\n"
	".plot .bounds{stroke:var(--now);stroke-width:6;stroke-opacity:.55}.plot .limit{stroke:var(--bad);stroke-dasharray:4 3}\n"
	"</style></head><body>\n";

/* From values to px. */
struct scale {
	double low, high;
};

static double place(const struct scale *scale, double value)
{
	const double part = scale->high > scale->low ? (value - scale->low) / (scale->high - scale->low) : 0.5;

	return LEFT + CLAMP(part, 0, 1) * (WIDTH - LEFT - RIGHT);
}

static void scale_take(struct scale *scale, double value)
{
	if (!isfinite(value))
		return;
	scale->low = fmin(scale->low, value);
	scale->high = fmax(scale->high, value);
}

static void line(const char *class, double x1, double y1, double x2, double y2, FILE *to)
{
	fprintf(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", class, x1, y1, x2, y2);
}

static void words(double x, double y, const char *anchor, const char *text, FILE *to)
{
	g_autofree char *markup = text_markup(text);

	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y, anchor, markup);
}

/* ---- the repetitions of a metric ---- */

static void dots(const struct series *series, size_t n, const char *class, const struct scale *scale, double y,
                 FILE *to)
{
	const double median = place(scale, shift_median(series->values, n));

	words(LEFT - 12, y + 4, "end", class, to);
	for (size_t i = 0; i < n; i++) {
		g_autofree char *text = value_text(series->values[i], series->unit), *title = text_markup(text);

		fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s</title></circle>", class,
		        place(scale, series->values[i]), y - 8 + (double)(i % SPREAD) * 2, title);
	}
	line("median", median, y - 12, median, y + 12, to);
}

static void repetitions(const struct watched *watched, const struct gate_result *result, FILE *to)
{
	const struct measurements *sets[] = {result->compared.base->measurements, result->compared.now->measurements};
	static const char *const classes[] = {"base", "now"};
	struct scale scale = {.low = INFINITY, .high = -INFINITY};
	const struct series *series[2];

	for (size_t i = 0; i < G_N_ELEMENTS(sets); i++) {
		series[i] = measurements_metric(sets[i], watched->name);
		for (size_t j = 0; j < sets[i]->n_repetitions; j++)
			scale_take(&scale, series[i]->values[j]);
	}
	g_autofree char *low = value_text(scale.low, watched->unit), *high = value_text(scale.high, watched->unit);

	fprintf(to,
	        "<svg class=\"plot\" role=\"img\" aria-label=\"each repetition, and the medians\" viewBox=\"0 0 %.0f %.0f\""
	        " width=\"%.0f\">",
	        WIDTH, 2 * ROW + 24, WIDTH);
	for (size_t i = 0; i < G_N_ELEMENTS(sets); i++)
		dots(series[i], sets[i]->n_repetitions, classes[i], &scale, ROW * ((double)i + 0.5), to);
	line("axis", LEFT, 2 * ROW + 4, WIDTH - RIGHT, 2 * ROW + 4, to);
	words(LEFT, 2 * ROW + 19, "start", low, to);
	words(WIDTH - RIGHT, 2 * ROW + 19, "end", high, to);
	fputs("</svg>\n", to);
}

/* ---- its change ---- */

/* Without bounds the interval ends at the edges. */
static void interval(const struct watched *watched, const struct gate_result *result, FILE *to)
{
	const struct judgement *judgement = &watched->judgement;
	const double limit = watched->more_is_better ? 1 / (1 + result->max_regression) : 1 + result->max_regression;
	struct scale scale = {.low = fmin(1, limit), .high = fmax(1, limit)};
	g_autofree char *ratio = ratio_text(judgement->ratio), *allowed = ratio_text(limit);

	scale_take(&scale, judgement->ratio);
	if (!judgement->exact && judgement->ratio_low > 0)
		scale_take(&scale, judgement->ratio_low);
	if (!judgement->exact)
		scale_take(&scale, judgement->ratio_high);
	const double pad = (scale.high - scale.low) * 0.1 + 0.001;

	scale.low -= pad;
	scale.high += pad;
	fprintf(to,
	        "<svg class=\"plot\" role=\"img\" aria-label=\"the change and its interval, and what is allowed\""
	        " viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\">",
	        WIDTH, ROW + 24, WIDTH);
	words(LEFT - 12, ROW / 2 + 4, "end", "change", to);
	if (!judgement->exact)
		line("bounds", place(&scale, judgement->ratio_low), ROW / 2,
		     isfinite(judgement->ratio_high) ? place(&scale, judgement->ratio_high) : WIDTH - RIGHT, ROW / 2,
		     to);
	line("median", place(&scale, judgement->ratio), 4, place(&scale, judgement->ratio), ROW - 4, to);
	line("axis", place(&scale, 1), 0, place(&scale, 1), ROW + 4, to);
	line("limit", place(&scale, limit), 0, place(&scale, limit), ROW + 4, to);
	words(place(&scale, judgement->ratio), ROW + 19, "middle", ratio, to);
	if (fabs(place(&scale, limit) - place(&scale, judgement->ratio)) > 110) {
		g_autofree char *text = g_strdup_printf("%s allowed", allowed);

		words(place(&scale, limit), ROW + 19, "middle", text, to);
	}
	fputs("</svg>\n", to);
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
		fputs("<p class=\"dim\">No flame graph: this is no single recording, and measurements have no call chains.</p>\n",
		      to);
}

void gate_print_html(const struct gate_result *result, gate_flames *flames, FILE *to)
{
	const struct measured *base = result->compared.base, *now = result->compared.now;
	g_autofree char *base_path = text_markup(base->path), *now_path = text_markup(now->path);

	fputs(head, to);
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
	fputs("</body></html>\n", to);
}
