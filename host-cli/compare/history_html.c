// SPDX-License-Identifier: BSD-2-Clause
/* The history of a metric as a page for people: each run, the levels between the changes, and where these are. */
#include <string.h>

#include "compare/comparison_output.h"
#include "compare/history.h"
#include "compare/html_plot.h"
#include "ui/text.h"

/* Of a plot, in px. */
#define WIDTH 1000.0
#define HEIGHT 240.0
#define LEFT 96.0
#define RIGHT 16.0
#define TOP 26.0 /* of the values: above are the changes */
#define FOOT 30.0
#define LABEL_CLEAR 80.0 /* between two labels of changes */
#define RUNS_CLEAR 120u  /* up to so many runs have large dots */

/* Without its folder and printable. New string. */
static char *run_name(const char *path)
{
	g_autofree char *name = g_path_get_basename(path);

	return text_printable(name);
}

/* "+12.30%", of the level before. New string. */
static char *change_text(const struct history_track *track, size_t level)
{
	const double before = history_level_median(track, level - 1);

	return g_strdup_printf("%+.2f%%", 100 * (history_level_median(track, level) / before - 1));
}

/* ---- the plot ---- */

static double middle(const struct plot_scale *runs, size_t value)
{
	return plot_place(runs, (double)value);
}

static void grid(const struct history_track *track, const struct plot_scale *values, FILE *to)
{
	double ticks[PLOT_TICKS_MAX];
	const size_t n = plot_ticks(values, 4, ticks);

	for (size_t i = 0; i < n; i++) {
		g_autofree char *text = value_text(ticks[i], track->unit);

		plot_line("grid", LEFT, plot_place(values, ticks[i]), WIDTH - RIGHT, plot_place(values, ticks[i]), to);
		plot_words(LEFT - 12, plot_place(values, ticks[i]) + 4, "end", text, to);
	}
}

static void changes(const struct history *history, const struct history_track *track, const struct plot_scale *runs,
                    FILE *to)
{
	double labelled = 0;

	for (size_t level = 1; level <= track->n_points; level++) {
		const char *verdict = history_level_verdict(history, track, level);
		const double x = middle(runs, history_level_begin(track, level)) / 2 +
		                 middle(runs, history_level_begin(track, level) - 1) / 2;
		g_autofree char *text = change_text(track, level);

		plot_line(verdict ? verdict : "changed", x, TOP - 8, x, HEIGHT - FOOT, to);
		if (x - labelled < LABEL_CLEAR)
			continue;
		plot_words(x, TOP - 13, "middle", text, to);
		labelled = x;
	}
}

static void levels(const struct history_track *track, const struct plot_scale *runs, const struct plot_scale *values,
                   FILE *to)
{
	for (size_t level = 0; level <= track->n_points; level++) {
		const double y = plot_place(values, history_level_median(track, level));

		plot_line("median", middle(runs, history_level_begin(track, level)), y,
		          middle(runs, history_level_end(track, level) - 1), y, to);
	}
}

static void dots(const struct history_track *track, const struct plot_scale *runs, const struct plot_scale *values,
                 FILE *to)
{
	for (guint i = 0; i < track->values->len; i++) {
		const double value = g_array_index(track->values, double, i);
		g_autofree char *name = run_name(((const struct measured *)g_ptr_array_index(track->runs, i))->path),
				*text = value_text(value, track->unit), *title = g_strdup_printf("%s: %s", name, text);

		plot_dot("now", middle(runs, i), plot_place(values, value), track->values->len <= RUNS_CLEAR ? 3.5 : 2,
		         title, to);
	}
}

static void plot(const struct history *history, const struct history_track *track, FILE *to)
{
	const guint n = track->values->len;
	struct plot_scale runs = plot_scale_new(LEFT + 8, WIDTH - RIGHT - 8),
			  values = plot_scale_new(HEIGHT - FOOT, TOP);
	g_autofree char *first = run_name(history_level_run(track, 0)),
			*last = run_name(((const struct measured *)g_ptr_array_index(track->runs, n - 1))->path);

	plot_scale_take(&runs, 0);
	plot_scale_take(&runs, n - 1);
	for (guint i = 0; i < n; i++)
		plot_scale_take(&values, g_array_index(track->values, double, i));
	plot_scale_pad(&values, 0.08, 0);
	plot_begin("each run, the levels, and where they change", WIDTH, HEIGHT, to);
	grid(track, &values, to);
	changes(history, track, &runs, to);
	levels(track, &runs, &values, to);
	dots(track, &runs, &values, to);
	plot_line("axis", LEFT, HEIGHT - FOOT + 4, WIDTH - RIGHT, HEIGHT - FOOT + 4, to);
	plot_words(LEFT, HEIGHT - 8, "start", first, to);
	if (n > 1)
		plot_words(WIDTH - RIGHT, HEIGHT - 8, "end", last, to);
	plot_end(to);
}

/* ---- the levels ---- */

static const char *verdict_class(const char *verdict)
{
	return !verdict ? "undecided" : strcmp(verdict, "better") == 0 ? "good" : "regression";
}

static void row(const struct history *history, const struct history_track *track, size_t level, FILE *to)
{
	g_autofree char *run = run_name(history_level_run(track, level)), *since = text_markup(run),
			*value = value_text(history_level_median(track, level), track->unit),
			*median = text_markup(value);
	const char *verdict = history_level_verdict(history, track, level);

	fprintf(to, "<tr><td>%s</td><td>%zu to %zu</td><td>%s</td>", since, history_level_begin(track, level) + 1,
	        history_level_end(track, level), median);
	if (level == 0) {
		fputs("<td></td><td></td></tr>\n", to);
		return;
	}
	g_autofree char *change = change_text(track, level);

	fprintf(to, "<td class=\"%s\">%s%s%s</td><td>%.3f</td></tr>\n", verdict_class(verdict), change,
	        verdict ? " " : "", verdict ? verdict : "", track->points[level - 1].p);
}

static void track_print(const struct history *history, const struct history_track *track, FILE *to)
{
	static const char *const words[] = {
		[HISTORY_UNKNOWN] = "",
		[HISTORY_LESS] = " Less is better.",
		[HISTORY_MORE] = " More is better.",
	};
	g_autofree char *name = text_markup(track->name);

	fprintf(to, "<h2>%s</h2>\n<p>%u run%s, %zu change%s.%s</p>\n", name, track->values->len,
	        track->values->len == 1 ? "" : "s", track->n_points, track->n_points == 1 ? "" : "s",
	        words[history_direction(history, track)]);
	plot(history, track, to);
	fputs("<table><thead><tr><th>since</th><th>runs</th><th>median</th><th>change</th><th>p</th></tr></thead><tbody>\n",
	      to);
	for (size_t level = 0; level <= track->n_points; level++)
		row(history, track, level, to);
	fputs("</tbody></table>\n", to);
}

void history_print_html(const struct history *history, FILE *to)
{
	g_autofree char *folder = text_markup(history->folder);

	html_page_begin("vprof history", to);
	fprintf(to,
	        "<h1>vprof history: %s</h1>\n"
	        "<p>%u runs, in the order of their names. Each dot is the median of a run, each bar that of a level; a "
	        "steady metric shows a change at most %g %% of the time.</p>\n",
	        folder, history->runs->len, history->options->alpha * 100);
	for (guint i = 0; i < history->tracks->len; i++)
		track_print(history, g_ptr_array_index(history->tracks, i), to);
	html_page_end(to);
}
