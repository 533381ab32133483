// SPDX-License-Identifier: BSD-2-Clause
#include "compare/history.h"

#include <string.h>

#include "lib/profile/shift.h"
#include "ui/message.h"

static void track_free(void *data)
{
	struct history_track *track = data;

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

static bool run_fits(const struct history_options *options, const GPtrArray *runs, const struct measured *run,
                     GError **error)
{
	g_autoptr(GError) why = NULL;

	if (runs->len == 0 || measured_comparable(g_ptr_array_index(runs, 0), run, &why))
		return true;
	if (options->force) {
		warn("%s", why->message);
		return true;
	}
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_INCOMPARABLE, "%s; --force includes them anyway",
	            why->message);
	return false;
}

/* Array of struct measured, by the names of their files; NULL: `error`. */
static GPtrArray *runs_load(const struct history_options *options, const char *folder, GError **error)
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
		struct measured *run =
			measured_load(g_ptr_array_index(paths, i), NULL, options->event, options->filter, error);

		if (!run || !run_fits(options, runs, run, error)) {
			measured_free(run);
			return NULL;
		}
		g_ptr_array_add(runs, run);
	}
	return g_steal_pointer(&runs);
}

/* ---- tracks ---- */

static struct history_track *track_of(GPtrArray *tracks, const struct series *series)
{
	struct history_track *track;

	for (guint i = 0; i < tracks->len; i++) {
		track = g_ptr_array_index(tracks, i);
		if (strcmp(track->name, series->name) == 0)
			return track;
	}
	track = g_new0(struct history_track, 1);
	track->name = series->name;
	track->unit = series->unit;
	track->values = g_array_new(FALSE, FALSE, sizeof(double));
	track->runs = g_ptr_array_new();
	g_ptr_array_add(tracks, track);
	return track;
}

static bool is_wanted(const struct history_options *options, const char *metric)
{
	return !options->metrics || g_strv_contains((const char *const *)options->metrics, metric);
}

static GPtrArray *tracks_make(const struct history_options *options, const GPtrArray *runs)
{
	GPtrArray *tracks = g_ptr_array_new_with_free_func(track_free);

	for (guint i = 0; i < runs->len; i++) {
		const struct measured *run = g_ptr_array_index(runs, i);

		for (guint j = 0; j < run->measurements->metrics->len; j++) {
			const struct series *series = g_ptr_array_index(run->measurements->metrics, j);
			double median = shift_median(series->values, run->measurements->n_repetitions);

			if (!is_wanted(options, series->name))
				continue;
			g_array_append_val(track_of(tracks, series)->values, median);
			g_ptr_array_add(track_of(tracks, series)->runs, (gpointer)run);
		}
	}
	for (guint i = 0; i < tracks->len; i++) {
		struct history_track *track = g_ptr_array_index(tracks, i);

		track->points = change_points_find((const double *)(const void *)track->values->data,
		                                   track->values->len, options->alpha, &track->n_points);
	}
	return tracks;
}

size_t history_level_begin(const struct history_track *track, size_t level)
{
	return level == 0 ? 0 : track->points[level - 1].at;
}

size_t history_level_end(const struct history_track *track, size_t level)
{
	return level == track->n_points ? track->values->len : track->points[level].at;
}

double history_level_median(const struct history_track *track, size_t level)
{
	size_t begin = history_level_begin(track, level);

	return shift_median(&g_array_index(track->values, double, begin), history_level_end(track, level) - begin);
}

const char *history_level_run(const struct history_track *track, size_t level)
{
	return ((const struct measured *)g_ptr_array_index(track->runs, history_level_begin(track, level)))->path;
}

enum history_direction history_direction(const struct history *history, const struct history_track *track)
{
	static const char *const times[] = {"ns", "us", "ms", "s", NULL};

	if (history->options->throughputs &&
	    g_strv_contains((const char *const *)history->options->throughputs, track->name))
		return HISTORY_MORE;
	if (measured_is_own(track->name) || g_strv_contains(times, track->unit))
		return HISTORY_LESS;
	return g_str_has_suffix(track->unit, "/s") ? HISTORY_MORE : HISTORY_UNKNOWN;
}

const char *history_level_verdict(const struct history *history, const struct history_track *track, size_t level)
{
	const double before = level > 0 ? history_level_median(track, level - 1) : 0,
		     now = history_level_median(track, level);
	const enum history_direction direction = history_direction(history, track);

	if (level == 0 || now == before || direction == HISTORY_UNKNOWN)
		return NULL;
	return (now > before) == (direction == HISTORY_MORE) ? "better" : "worse";
}

struct history *history_load(const char *folder, const struct history_options *options, GError **error)
{
	GPtrArray *runs = runs_load(options, folder, error);
	struct history *history;

	if (!runs)
		return NULL;
	history = g_new(struct history, 1);
	*history = (struct history){folder, options, runs, tracks_make(options, runs)};
	return history;
}

mode_t history_mode(const struct history *history)
{
	mode_t mode = 0666;

	for (guint i = 0; i < history->runs->len; i++)
		mode &= ((const struct measured *)g_ptr_array_index(history->runs, i))->mode;
	return mode;
}

void history_free(struct history *history)
{
	if (!history)
		return;
	g_ptr_array_unref(history->tracks);
	g_ptr_array_unref(history->runs);
	g_free(history);
}
