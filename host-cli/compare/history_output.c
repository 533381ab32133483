// SPDX-License-Identifier: BSD-2-Clause
#include "compare/comparison_output.h"
#include "compare/history.h"
#include "ui/text.h"

#define HISTORY_JSON_VERSION 1

static const char *const direction_names[] = {[HISTORY_LESS] = "less", [HISTORY_MORE] = "more"};

static void track_print(const struct history *history, const struct history_track *track, FILE *to)
{
	g_autofree char *name = text_printable(track->name), *unit = text_printable(track->unit);
	static const char *const words[] = {
		[HISTORY_UNKNOWN] = "",
		[HISTORY_LESS] = " (less is better)",
		[HISTORY_MORE] = " (more is better)",
	};
	const char *better = words[history_direction(history, track)];

	fprintf(to, "#\n# metric   %s%s: %u run%s, %zu change%s\n", name, better, track->values->len,
	        track->values->len == 1 ? "" : "s", track->n_points, track->n_points == 1 ? "" : "s");
	fprintf(to, "# %6s  %6s  %12s  %9s  %-6s  %6s  %s\n", "From", "To", "Median", "Change", "", "p", "Since");
	for (size_t level = 0; level <= track->n_points; level++) {
		g_autofree char *run = g_path_get_basename(history_level_run(track, level)),
				*since = text_printable(run);
		double median = history_level_median(track, level);
		g_autofree char *value = value_text(median, unit);

		fprintf(to, "  %6zu  %6zu  %12s", history_level_begin(track, level) + 1,
		        history_level_end(track, level), value);
		if (level == 0) {
			fprintf(to, "  %9s  %6s  %6s  %s\n", "", "", "", since);
			continue;
		}
		fprintf(to, "  %+8.2f%%  %-6s  %6.3f  %s\n",
		        100 * (median / history_level_median(track, level - 1) - 1),
		        history_level_verdict(history, track, level) ? history_level_verdict(history, track, level)
		                                                     : "",
		        track->points[level - 1].p, since);
	}
}

void history_print_text(const struct history *history, FILE *to)
{
	g_autofree char *printable = text_printable(history->folder);

	fprintf(to, "# history  %s: %u runs, in the order of their names; alpha %g\n", printable, history->runs->len,
	        history->options->alpha);
	for (guint i = 0; i < history->tracks->len; i++)
		track_print(history, g_ptr_array_index(history->tracks, i), to);
}

static json_t *track_json(const struct history *history, const struct history_track *track)
{
	json_t *values = json_array(), *levels = json_array();

	for (guint i = 0; i < track->values->len; i++) {
		const struct measured *run = g_ptr_array_index(track->runs, i);

		json_array_append_new(values, json_pack("{s:o, s:f}", "run", text_json(run->path), "median",
		                                        g_array_index(track->values, double, i)));
	}
	for (size_t level = 0; level <= track->n_points; level++)
		json_array_append_new(levels,
		                      json_pack("{s:I, s:I, s:o, s:f, s:s?, s:o}", "from",
		                                (json_int_t)history_level_begin(track, level) + 1, "to",
		                                (json_int_t)history_level_end(track, level), "since",
		                                text_json(history_level_run(track, level)), "median",
		                                history_level_median(track, level), "verdict",
		                                history_level_verdict(history, track, level), "p",
		                                level == 0 ? json_null() : json_real(track->points[level - 1].p)));
	return json_pack("{s:o, s:o, s:s?, s:o, s:o}", "name", text_json(track->name), "unit", text_json(track->unit),
	                 "better", direction_names[history_direction(history, track)], "values", values, "levels",
	                 levels);
}

void history_print_json(const struct history *history, FILE *to)
{
	json_t *metrics = json_array(), *document;

	for (guint i = 0; i < history->tracks->len; i++)
		json_array_append_new(metrics, track_json(history, g_ptr_array_index(history->tracks, i)));
	document = json_pack("{s:s, s:i, s:f, s:o}", "format", "vprof-history", "version", HISTORY_JSON_VERSION,
	                     "alpha", history->options->alpha, "metrics", metrics);
	text_print_json(document, 9, to);
	json_decref(document);
}
