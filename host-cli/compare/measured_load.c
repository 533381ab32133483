// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/measured_priv.h"
#include "reading/filter.h"
#include "ui/output_file.h"
#include "ui/text.h"

#define JSON_BYTES_MAX (UINT64_C(256) << 20)

static bool names_json(const char *path)
{
	return g_str_has_suffix(path, ".json");
}

/* Up to JSON_BYTES_MAX; NULL with errno. */
static GString *file_read(const char *path)
{
	g_autoptr(GString) text = g_string_new(NULL);
	FILE *file = fopen(path, "re");
	char piece[8192];
	size_t n = 0;

	if (!file)
		return NULL;
	while (text->len <= JSON_BYTES_MAX && (n = fread(piece, 1, sizeof(piece), file)) > 0)
		g_string_append_len(text, piece, (gssize)n);
	if (text->len > JSON_BYTES_MAX)
		errno = EFBIG;
	else if (!ferror(file))
		errno = 0;
	const int failed = errno;

	fclose(file);
	errno = failed;
	return failed == 0 ? g_steal_pointer(&text) : NULL;
}

/* The samples are not there any more. */
static bool filter_check(const struct measured *measured, const struct filter_options *filter, GError **error)
{
	g_autofree char *wanted = filter_options_text(filter);
	const char *had = member_text(measured->conditions, "filter");

	if (!wanted || g_strcmp0(wanted, had) == 0)
		return true;
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_INCOMPARABLE,
	            "%s was made of %s, and not of only \"%s\"; make it anew with these filters", measured->path,
	            had ? had : "all samples", wanted);
	return false;
}

static struct measured *load_json(const char *path, const struct filter_options *filter, GError **error)
{
	json_error_t why;
	g_autoptr(GString) text = file_read(path);
	struct measured *measured;
	json_t *document;

	if (!text) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT, "cannot read %s: %s", path,
		            g_strerror(errno));
		return NULL;
	}
	document = json_read(text->str, text->len, JSON_REJECT_DUPLICATES, &why);
	if (!document) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT, "cannot read %s: %s", path, why.text);
		return NULL;
	}
	measured = measured_from_json(path, document, error);
	json_decref(document);
	if (!measured || filter_check(measured, filter, error))
		return measured;
	measured_free(measured);
	return NULL;
}

/* A repetition without a sample in a mode has 0 there; any other metric it lacks was not measured. */
static struct series *joined_metric(struct measurements *joined, const struct series *from)
{
	return measured_is_mode(from->name) || measured_is_waiting(from->name)
	               ? measurements_add_metric(joined, from->name, from->unit)
	               : measurements_add_partial(joined, from->name, from->unit);
}

/* The repetitions of `more` behind those of `all`, which is freed. */
static struct measured *measured_join(struct measured *all, const struct measured *more)
{
	const struct measurements *parts[] = {all->measurements, more->measurements};
	size_t n = parts[0]->n_repetitions + parts[1]->n_repetitions, at = 0;
	struct measured *joined = measured_new(all->path, parts[0]->unit, n, json_incref(all->conditions));

	joined->mode = all->mode & more->mode;
	for (size_t part = 0; part < G_N_ELEMENTS(parts); part++) {
		size_t bytes = parts[part]->n_repetitions * sizeof(double);

		for (guint i = 0; i < parts[part]->metrics->len; i++) {
			const struct series *from = g_ptr_array_index(parts[part]->metrics, i);

			memcpy(joined_metric(joined->measurements, from)->values + at, from->values, bytes);
		}
		for (guint i = 0; i < parts[part]->functions->len; i++) {
			const struct series *from = g_ptr_array_index(parts[part]->functions, i);
			struct series *to =
				measurements_add_function(joined->measurements, from->name, from->module, from->mode);

			memcpy(to->values + at, from->values, bytes);
		}
		at += parts[part]->n_repetitions;
	}
	measured_free(all);
	measurements_drop_partial(joined->measurements);
	return joined;
}

static gint paths_compare(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GDir *measured_folder_open(const char *path, GError **error)
{
	GDir *folder = g_dir_open(path, 0, NULL);
	const int why = errno;

	if (!folder)
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(why), "cannot read the folder %s: %s",
		            path, g_strerror(why));
	return folder;
}

/* The recordings of a folder, by name; NULL-terminated, by g_strfreev. */
static char **folder_recordings(const char *path, GError **error)
{
	g_autoptr(GDir) folder = measured_folder_open(path, error);
	GPtrArray *paths;
	const char *name;

	if (!folder)
		return NULL;
	paths = g_ptr_array_new();
	while ((name = g_dir_read_name(folder)))
		if (g_str_has_suffix(name, ".data"))
			g_ptr_array_add(paths, g_build_filename(path, name, NULL));
	g_ptr_array_sort(paths, paths_compare);
	g_ptr_array_add(paths, NULL);
	return (char **)g_ptr_array_free(paths, FALSE);
}

/* The time of a repetition, by its median where there are several. */
static double time_of(const struct measured *measured)
{
	const struct series *time = g_ptr_array_index(measured->measurements->metrics, 0);

	return shift_median(time->values, measured->measurements->n_repetitions);
}

/* The one with the median of times[0..n-1], or nearest to it. */
static size_t typical_find(const double *times, size_t n)
{
	const double median = shift_median(times, n);
	size_t typical = 0;

	for (size_t i = 1; i < n; i++)
		if (fabs(times[i] - median) < fabs(times[typical] - median))
			typical = i;
	return typical;
}

static struct measured *load_folder(const char *path, const char *phase, const char *event,
                                    const struct filter_options *filter, GError **error)
{
	g_auto(GStrv) paths = folder_recordings(path, error);
	g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(double));
	struct measured *all = NULL;

	if (!paths)
		return NULL;
	for (char **file = paths; *file; file++) {
		struct measured *one = measured_from_recording(*file, phase, event, filter, error);

		if (!one || (all && !measured_comparable(all, one, error))) {
			measured_free(one);
			measured_free(all);
			return NULL;
		}
		const double time = time_of(one);

		g_array_append_val(times, time);
		all = all ? measured_join(all, one) : g_steal_pointer(&one);
		measured_free(one);
	}
	if (!all) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_EMPTY, "%s holds no recordings (*.data)", path);
		return NULL;
	}
	g_free(all->path);
	all->path = g_strdup(path);
	g_free(all->typical);
	all->typical = g_strdup(paths[typical_find((const double *)times->data, times->len)]);
	return all;
}

struct measured *measured_load(const char *path, const char *phase, const char *event,
                               const struct filter_options *filter, GError **error)
{
	struct measured *measured;

	if (g_file_test(path, G_FILE_TEST_IS_DIR))
		measured = load_folder(path, phase, event, filter, error);
	else
		measured = names_json(path) ? load_json(path, filter, error)
		                            : measured_from_recording(path, phase, event, filter, error);
	if (measured)
		measured->filter = filter;
	if (!measured || measured->measurements->n_repetitions <= SHIFT_REPETITIONS_MAX)
		return measured;
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT, "%s has %zu repetitions; the most are %u", path,
	            measured->measurements->n_repetitions, SHIFT_REPETITIONS_MAX);
	measured_free(measured);
	return NULL;
}

static bool save_json(FILE *to, const void *document, GError **error)
{
	(void)error;
	json_write(document, JSON_INDENT(1) | JSON_REAL_PRECISION(12), to);
	fputc('\n', to);
	return true;
}

bool measured_save(const struct measured *measured, const char *path, GError **error)
{
	json_t *document = measured_to_json(measured);
	bool saved = output_file_write(path, 0666, save_json, document, error);

	json_decref(document);
	return saved;
}
