// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "compare/comparison_output.h"
#include "compare/measured.h"
#include "lib/profile/change_point.h"
#include "lib/profile/shift.h"
#include "reading/filter.h"
#include "ui/message.h"
#include "ui/text.h"

#define HISTORY_JSON_VERSION 1

struct history_values {
	struct filter_options filter;
	char **metrics, **throughputs;
	double alpha;
	gboolean json, force;
};

static const struct history_values defaults = {.alpha = 0.01};

static const struct option_row options[] = {
	{"metric", OPTION_TEXTS, offsetof(struct history_values, metrics), "show only this metric; may be repeated",
         "NAME"},
	{"throughput", OPTION_TEXTS, offsetof(struct history_values, throughputs),
         "treat more of NAME as better; may be repeated", "NAME"},
	{"alpha", OPTION_FRACTION, offsetof(struct history_values, alpha),
         "rate of false changes of a steady metric (default 0.01)", "A"},
	OPTION_ROWS(filter_option_rows, struct history_values, filter),
	{"force", OPTION_FLAG, offsetof(struct history_values, force), "include runs made under different conditions",
         NULL},
	{"json", OPTION_FLAG, offsetof(struct history_values, json), "print one JSON document", NULL},
	{NULL},
};

/* One metric of all runs that have it. */
struct track {
	const char *name, *unit;
	GArray *values;  /* double: the median of a run's repetitions */
	GPtrArray *runs; /* const struct measured *, borrowed */
	struct change_point *points;
	size_t n_points;
};

static void track_free(void *data)
{
	struct track *track = data;

	g_array_unref(track->values);
	g_ptr_array_unref(track->runs);
	g_free(track->points);
	g_free(track);
}

/* ---- the runs ---- */

/* "run-9" before "run-10". */
static gint names_compare(gconstpointer a, gconstpointer b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *run_paths(const char *folder, GError **error)
{
	g_autoptr(GDir) dir = measured_folder_open(folder, error);
	GPtrArray *paths;
	const char *name;

	if (!dir)
		return NULL;
	paths = g_ptr_array_new_with_free_func(g_free);
	while ((name = g_dir_read_name(dir)))
		if (g_str_has_suffix(name, ".json") || g_str_has_suffix(name, ".data"))
			g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
	g_ptr_array_sort(paths, names_compare);
	return paths;
}

static bool run_fits(const struct history_values *given, const GPtrArray *runs, const struct measured *run,
                     GError **error)
{
	g_autoptr(GError) why = NULL;

	if (runs->len == 0 || measured_comparable(g_ptr_array_index(runs, 0), run, &why))
		return true;
	if (given->force) {
		warn("%s", why->message);
		return true;
	}
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_INCOMPARABLE, "%s; --force includes them anyway",
	            why->message);
	return false;
}

/* Array of struct measured, by the names of their files; NULL: `error`. */
static GPtrArray *runs_load(const struct history_values *given, const char *folder, GError **error)
{
	g_autoptr(GPtrArray) paths = run_paths(folder, error);
	g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func((GDestroyNotify)measured_free);

	if (!paths)
		return NULL;
	if (paths->len == 0 || paths->len > CHANGE_SERIES_MAX) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_EMPTY,
		            "%s holds %u runs (*.json, *.data); 1 to %u are supported", folder, paths->len,
		            CHANGE_SERIES_MAX);
		return NULL;
	}
	for (guint i = 0; i < paths->len; i++) {
		struct measured *run = measured_load(g_ptr_array_index(paths, i), NULL, NULL, &given->filter, error);

		if (!run || !run_fits(given, runs, run, error)) {
			measured_free(run);
			return NULL;
		}
		g_ptr_array_add(runs, run);
	}
	return g_steal_pointer(&runs);
}

/* ---- tracks ---- */

static struct track *track_of(GPtrArray *tracks, const struct series *series)
{
	struct track *track;

	for (guint i = 0; i < tracks->len; i++) {
		track = g_ptr_array_index(tracks, i);
		if (strcmp(track->name, series->name) == 0)
			return track;
	}
	track = g_new0(struct track, 1);
	track->name = series->name;
	track->unit = series->unit;
	track->values = g_array_new(FALSE, FALSE, sizeof(double));
	track->runs = g_ptr_array_new();
	g_ptr_array_add(tracks, track);
	return track;
}

static bool is_wanted(const struct history_values *given, const char *metric)
{
	return !given->metrics || g_strv_contains((const char *const *)given->metrics, metric);
}

static GPtrArray *tracks_make(const struct history_values *given, const GPtrArray *runs)
{
	GPtrArray *tracks = g_ptr_array_new_with_free_func(track_free);

	for (guint i = 0; i < runs->len; i++) {
		const struct measured *run = g_ptr_array_index(runs, i);

		for (guint j = 0; j < run->measurements->metrics->len; j++) {
			const struct series *series = g_ptr_array_index(run->measurements->metrics, j);
			double median = shift_median(series->values, run->measurements->n_repetitions);

			if (!is_wanted(given, series->name))
				continue;
			g_array_append_val(track_of(tracks, series)->values, median);
			g_ptr_array_add(track_of(tracks, series)->runs, (gpointer)run);
		}
	}
	for (guint i = 0; i < tracks->len; i++) {
		struct track *track = g_ptr_array_index(tracks, i);

		track->points = change_points_find((const double *)(const void *)track->values->data,
		                                   track->values->len, given->alpha, &track->n_points);
	}
	return tracks;
}

/* A level is the stretch between two changes; level 0 is before the first. */
static size_t level_begin(const struct track *track, size_t level)
{
	return level == 0 ? 0 : track->points[level - 1].at;
}

static size_t level_end(const struct track *track, size_t level)
{
	return level == track->n_points ? track->values->len : track->points[level].at;
}

static double level_median(const struct track *track, size_t level)
{
	size_t begin = level_begin(track, level);

	return shift_median(&g_array_index(track->values, double, begin), level_end(track, level) - begin);
}

static const char *level_run(const struct track *track, size_t level)
{
	return ((const struct measured *)g_ptr_array_index(track->runs, level_begin(track, level)))->path;
}

/* Which way a metric is better, judged by its name and its unit. */
enum direction { DIRECTION_UNKNOWN, DIRECTION_LESS, DIRECTION_MORE };

static const char *const direction_names[] = {[DIRECTION_LESS] = "less", [DIRECTION_MORE] = "more"};

static enum direction direction_of(const struct history_values *given, const struct track *track)
{
	static const char *const times[] = {"ns", "us", "ms", "s", NULL};

	if (given->throughputs && g_strv_contains((const char *const *)given->throughputs, track->name))
		return DIRECTION_MORE;
	if (measured_is_own(track->name) || g_strv_contains(times, track->unit))
		return DIRECTION_LESS;
	return g_str_has_suffix(track->unit, "/s") ? DIRECTION_MORE : DIRECTION_UNKNOWN;
}

/* Compared with the level before; NULL if this is the first, if they are equal, or if the direction is unknown. */
static const char *level_verdict(const struct history_values *given, const struct track *track, size_t level)
{
	const double before = level > 0 ? level_median(track, level - 1) : 0, now = level_median(track, level);
	const enum direction direction = direction_of(given, track);

	if (level == 0 || now == before || direction == DIRECTION_UNKNOWN)
		return NULL;
	return (now > before) == (direction == DIRECTION_MORE) ? "better" : "worse";
}

/* ---- output ---- */

static void track_print(const struct history_values *given, const struct track *track)
{
	g_autofree char *name = text_printable(track->name), *unit = text_printable(track->unit);
	static const char *const words[] = {
		[DIRECTION_UNKNOWN] = "",
		[DIRECTION_LESS] = " (less is better)",
		[DIRECTION_MORE] = " (more is better)",
	};
	const char *better = words[direction_of(given, track)];

	printf("#\n# metric   %s%s: %u run%s, %zu change%s\n", name, better, track->values->len,
	       track->values->len == 1 ? "" : "s", track->n_points, track->n_points == 1 ? "" : "s");
	printf("# %6s  %6s  %12s  %9s  %-6s  %6s  %s\n", "From", "To", "Median", "Change", "", "p", "Since");
	for (size_t level = 0; level <= track->n_points; level++) {
		g_autofree char *run = g_path_get_basename(level_run(track, level)), *since = text_printable(run);
		double median = level_median(track, level);
		g_autofree char *value = value_text(median, unit);

		printf("  %6zu  %6zu  %12s", level_begin(track, level) + 1, level_end(track, level), value);
		if (level == 0) {
			printf("  %9s  %6s  %6s  %s\n", "", "", "", since);
			continue;
		}
		printf("  %+8.2f%%  %-6s  %6.3f  %s\n", 100 * (median / level_median(track, level - 1) - 1),
		       level_verdict(given, track, level) ? level_verdict(given, track, level) : "",
		       track->points[level - 1].p, since);
	}
}

static void print_text(const struct history_values *given, const char *folder, const GPtrArray *runs,
                       const GPtrArray *tracks)
{
	g_autofree char *printable = text_printable(folder);

	printf("# history  %s: %u runs, in the order of their names; alpha %g\n", printable, runs->len, given->alpha);
	for (guint i = 0; i < tracks->len; i++)
		track_print(given, g_ptr_array_index(tracks, i));
}

static json_t *track_json(const struct history_values *given, const struct track *track)
{
	json_t *values = json_array(), *levels = json_array();

	for (guint i = 0; i < track->values->len; i++) {
		const struct measured *run = g_ptr_array_index(track->runs, i);

		json_array_append_new(values, json_pack("{s:o, s:f}", "run", text_json(run->path), "median",
		                                        g_array_index(track->values, double, i)));
	}
	for (size_t level = 0; level <= track->n_points; level++)
		json_array_append_new(
			levels,
			json_pack("{s:I, s:I, s:o, s:f, s:s?, s:o}", "from", (json_int_t)level_begin(track, level) + 1,
		                  "to", (json_int_t)level_end(track, level), "since",
		                  text_json(level_run(track, level)), "median", level_median(track, level), "verdict",
		                  level_verdict(given, track, level), "p",
		                  level == 0 ? json_null() : json_real(track->points[level - 1].p)));
	return json_pack("{s:o, s:o, s:s?, s:o, s:o}", "name", text_json(track->name), "unit", text_json(track->unit),
	                 "better", direction_names[direction_of(given, track)], "values", values, "levels", levels);
}

static void print_json(const struct history_values *given, const GPtrArray *tracks)
{
	json_t *metrics = json_array(), *document;

	for (guint i = 0; i < tracks->len; i++)
		json_array_append_new(metrics, track_json(given, g_ptr_array_index(tracks, i)));
	document = json_pack("{s:s, s:i, s:f, s:o}", "format", "vprof-history", "version", HISTORY_JSON_VERSION,
	                     "alpha", given->alpha, "metrics", metrics);
	text_print_json(document, 9, stdout);
	json_decref(document);
}

static int history_run(void *values, unsigned n, char **arguments)
{
	const struct history_values *given = values;
	g_autoptr(GError) error = NULL;
	g_autoptr(GPtrArray) runs = NULL, tracks = NULL;

	if (n == 0)
		return usage_error(command_history.name, "DIR is missing: a folder with one file per run");
	if (!(given->alpha >= CHANGE_ALPHA_MIN && given->alpha <= 0.5))
		return usage_error(command_history.name, "--alpha takes a number from %g to 0.5", CHANGE_ALPHA_MIN);
	if (!filter_options_check(&given->filter, &error))
		return usage_error(command_history.name, "%s", error->message);
	runs = runs_load(given, arguments[0], &error);
	if (!runs)
		return failure(error);
	tracks = tracks_make(given, runs);
	if (tracks->len == 0) {
		say("no run in %s has a metric \"%s\"", arguments[0], given->metrics[0]);
		return STATUS_FAILED;
	}
	if (given->json)
		print_json(given, tracks);
	else
		print_text(given, arguments[0], runs, tracks);
	return STATUS_OK;
}

const struct command command_history = {
	.name = "history",
	.summary = "Find where a metric shifted",
	.arguments = "DIR",
	.max_arguments = 1,
	.argument_words = {"@files"},
	.pages = true,
	.manual = "vprof-history",
	.description =

		"DIR holds one file per run: measurements (*.json, as `vprof gate --update-baseline` writes them)\n"
		"or a recording (*.data). Runs are ordered by name, and numbers in names by value. A change needs\n"
		"at least six runs, three on each side.\n"
		"\n"
		"Examples:\n"
		"  vprof history runs/\n"
		"  vprof history --metric guest runs/\n"
		"  vprof history --throughput requests runs/\n"
		"  vprof history --json runs/ | jq '.metrics[] | select(.levels | length > 1)'",
	.options = options,
	.values_bytes = sizeof(struct history_values),
	.defaults = &defaults,
	.run = history_run,
};
