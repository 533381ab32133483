// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/measurements.h"

#include <math.h>
#include <string.h>

static void series_free(void *data)
{
	struct series *series = data;

	g_free(series->name);
	g_free(series->module);
	g_free(series->unit);
	g_free(series->values);
	g_free(series);
}

/* Functions are the same when name, module and mode are. */
static guint series_hash(gconstpointer data)
{
	const struct series *series = data;

	return g_str_hash(series->name) * 31 + g_str_hash(series->module) + (guint)series->mode;
}

static gboolean series_same(gconstpointer a, gconstpointer b)
{
	const struct series *left = a, *right = b;

	return left->mode == right->mode && strcmp(left->name, right->name) == 0 &&
	       strcmp(left->module, right->module) == 0;
}

struct measurements *measurements_new(const char *unit, size_t n_repetitions)
{
	struct measurements *measurements = g_new0(struct measurements, 1);

	measurements->unit = g_strdup(unit);
	measurements->n_repetitions = n_repetitions;
	measurements->metrics = g_ptr_array_new_with_free_func(series_free);
	measurements->functions = g_ptr_array_new_with_free_func(series_free);
	measurements->index = g_hash_table_new(series_hash, series_same);
	return measurements;
}

void measurements_free(struct measurements *measurements)
{
	if (!measurements)
		return;
	g_hash_table_unref(measurements->index);
	g_ptr_array_unref(measurements->metrics);
	g_ptr_array_unref(measurements->functions);
	g_free(measurements->unit);
	g_free(measurements);
}

const struct series *measurements_metric(const struct measurements *measurements, const char *name)
{
	for (guint i = 0; i < measurements->metrics->len; i++) {
		const struct series *series = g_ptr_array_index(measurements->metrics, i);

		if (strcmp(series->name, name) == 0)
			return series;
	}
	return NULL;
}

static struct series *series_new(const struct measurements *measurements, const struct series *key)
{
	struct series *series = g_new(struct series, 1);

	*series = (struct series){
		.name = g_strdup(key->name),
		.module = g_strdup(key->module),
		.unit = g_strdup(key->unit),
		.mode = key->mode,
		.values = g_new0(double, measurements->n_repetitions),
	};
	return series;
}

struct series *measurements_add_metric(struct measurements *measurements, const char *name, const char *unit)
{
	struct series *series = (struct series *)measurements_metric(measurements, name);

	if (!series) {
		const struct series key = {.name = (char *)name, .module = (char *)"", .unit = (char *)unit};

		series = series_new(measurements, &key);
		g_ptr_array_add(measurements->metrics, series);
	}
	return series;
}

struct series *measurements_add_partial(struct measurements *measurements, const char *name, const char *unit)
{
	bool is_new = !measurements_metric(measurements, name);
	struct series *series = measurements_add_metric(measurements, name, unit);

	for (size_t i = 0; is_new && i < measurements->n_repetitions; i++)
		series->values[i] = NAN;
	return series;
}

static bool is_partial(const struct series *series, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isnan(series->values[i]))
			return true;
	return false;
}

void measurements_drop_partial(struct measurements *measurements)
{
	for (guint i = measurements->metrics->len; i-- > 0;)
		if (is_partial(g_ptr_array_index(measurements->metrics, i), measurements->n_repetitions))
			g_ptr_array_remove_index(measurements->metrics, i);
}

struct series *measurements_add_function(struct measurements *measurements, const char *name, const char *module,
                                         enum profile_mode mode)
{
	g_autofree char *source_name = g_strndup(name, 1 + strcspn(name + (*name != '\0'), "."));
	const struct series key = {
		.name = source_name,
		.module = (char *)module,
		.unit = measurements->unit,
		.mode = mode,
	};
	struct series *series = g_hash_table_lookup(measurements->index, &key);

	if (!series) {
		series = series_new(measurements, &key);
		g_ptr_array_add(measurements->functions, series);
		g_hash_table_add(measurements->index, series);
	}
	return series;
}

void measurements_to_shares(struct measurements *measurements)
{
	struct series *whole = g_ptr_array_index(measurements->metrics, 0);

	for (guint i = 0; i < measurements->functions->len; i++) {
		struct series *series = g_ptr_array_index(measurements->functions, i);

		g_free(series->unit);
		series->unit = g_strdup("%");
		for (size_t r = 0; r < measurements->n_repetitions; r++)
			series->values[r] = whole->values[r] > 0 ? 100 * series->values[r] / whole->values[r] : 0;
	}
	g_ptr_array_set_size(measurements->metrics, 1);
	for (size_t r = 0; r < measurements->n_repetitions; r++)
		whole->values[r] = 100;
	g_free(whole->unit);
	whole->unit = g_strdup("%");
	g_free(measurements->unit);
	measurements->unit = g_strdup("%");
}

bool measurements_exact(const struct measurements *measurements, const struct series *series)
{
	if (!measurements->counted || strcmp(series->unit, measurements->unit) != 0)
		return false;
	for (size_t i = 1; i < measurements->n_repetitions; i++)
		if (series->values[i] != series->values[0])
			return false;
	return true;
}
