// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "compare/measured_priv.h"
#include "ui/text.h"

#define FORMAT_NAME "vprof-measurements"
#define FORMAT_VERSION 1

static json_t *series_to_json(const struct series *series, size_t n)
{
	json_t *values = json_array(), *object = json_object();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(values, json_real(series->values[i]));
	json_object_set_new(object, "name", text_json(series->name));
	json_object_set_new(object, "values", values);
	return object;
}

static json_t *metrics_to_json(const struct measurements *measurements)
{
	json_t *list = json_array();

	for (guint i = 0; i < measurements->metrics->len; i++) {
		const struct series *series = g_ptr_array_index(measurements->metrics, i);
		json_t *object = series_to_json(series, measurements->n_repetitions);

		json_object_set_new(object, "unit", text_json(series->unit));
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *functions_to_json(const struct measurements *measurements)
{
	json_t *list = json_array();

	for (guint i = 0; i < measurements->functions->len; i++) {
		const struct series *series = g_ptr_array_index(measurements->functions, i);
		json_t *object = series_to_json(series, measurements->n_repetitions);

		json_object_set_new(object, "module", text_json(series->module));
		json_object_set_new(object, "mode", json_string(profile_mode_name(series->mode)));
		json_array_append_new(list, object);
	}
	return list;
}

json_t *measured_to_json(const struct measured *measured)
{
	const struct measurements *measurements = measured->measurements;

	return json_pack("{s:s, s:i, s:O, s:s, s:I, s:o, s:o}", "format", FORMAT_NAME, "version", FORMAT_VERSION,
	                 "conditions", measured->conditions, "unit", measurements->unit, "repetitions",
	                 (json_int_t)measurements->n_repetitions, "metrics", metrics_to_json(measurements), "functions",
	                 functions_to_json(measurements));
}

static bool refuse(const char *path, const char *what, GError **error)
{
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT,
	            "%s is no file of measurements that this version reads: %s", path, what);
	return false;
}

static bool values_read(const json_t *object, struct series *series, size_t n)
{
	const json_t *values = json_object_get(object, "values");

	if (json_array_size(values) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		double value = json_number_value(json_array_get(values, i));

		if (!isfinite(value) || value < 0)
			return false;
		series->values[i] = value;
	}
	return true;
}

static bool mode_read(const char *name, enum profile_mode *mode)
{
	for (*mode = PROFILE_KERNEL; *mode <= PROFILE_OTHER; (*mode)++)
		if (g_strcmp0(name, profile_mode_name(*mode)) == 0)
			return true;
	return false;
}

static bool metrics_read(const json_t *list, struct measurements *measurements)
{
	const json_t *object;
	size_t i;

	json_array_foreach(list, i, object) {
		const char *name = member_text(object, "name"), *unit = member_text(object, "unit");

		if (!name || !unit ||
		    !values_read(object, measurements_add_metric(measurements, name, unit),
		                 measurements->n_repetitions))
			return false;
	}
	return i != 0;
}

static bool functions_read(const json_t *list, struct measurements *measurements)
{
	const json_t *object;
	size_t i;

	json_array_foreach(list, i, object) {
		const char *name = member_text(object, "name"), *module = member_text(object, "module");
		enum profile_mode mode;

		if (!name || !module || !mode_read(member_text(object, "mode"), &mode) ||
		    !values_read(object, measurements_add_function(measurements, name, module, mode),
		                 measurements->n_repetitions))
			return false;
	}
	return json_is_array(list);
}

struct measured *measured_from_json(const char *path, const json_t *document, GError **error)
{
	const char *unit = member_text(document, "unit");
	uint64_t n = member_number(document, "repetitions", 0);
	struct measured *measured;

	if (g_strcmp0(member_text(document, "format"), FORMAT_NAME) != 0 ||
	    member_number(document, "version", 0) != FORMAT_VERSION)
		return refuse(path, "its format is not " FORMAT_NAME " 1", error), NULL;
	if (!unit || n == 0 || n > SHIFT_REPETITIONS_MAX || !json_is_object(json_object_get(document, "conditions")))
		return refuse(path, "it lacks conditions, a unit or repetitions", error), NULL;
	measured = measured_new(path, unit, (size_t)n, json_incref(json_object_get(document, "conditions")));
	if (metrics_read(json_object_get(document, "metrics"), measured->measurements) &&
	    functions_read(json_object_get(document, "functions"), measured->measurements))
		return measured;
	measured_free(measured);
	return refuse(path, "a metric or a function of it is damaged", error), NULL;
}
