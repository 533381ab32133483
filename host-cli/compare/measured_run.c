// SPDX-License-Identifier: BSD-2-Clause
#include "compare/measured_run.h"

#include <math.h>
#include <string.h>

#include "ui/text.h"

bool measured_is_own(const char *name)
{
	static const char *const names[] = {"total", "guest", "kernel", "user", "vmm", "wall", "cpu", "memory", NULL};

	return g_strv_contains(names, name);
}

/* A number that is not there is none, not 0. */
static void add_number(struct measurements *measurements, const char *name, const char *unit, double value,
                       size_t index)
{
	if (value >= 0 && isfinite(value))
		measurements_add_partial(measurements, name, unit)->values[index] = value;
}

static void add_metric(struct measurements *measurements, const json_t *metric, size_t index)
{
	const char *name = member_text(metric, "name"), *unit = member_text(metric, "unit");
	const json_t *value = json_object_get(metric, "value");

	if (name != NULL && unit != NULL && json_is_number(value) && !measured_is_own(name))
		add_number(measurements, name, unit, json_number_value(value), index);
}

void measured_add_run(struct measurements *measurements, const json_t *run, size_t index)
{
	const json_t *user = json_object_get(run, "user-ns"), *system = json_object_get(run, "system-ns"),
		     *memory = json_object_get(run, "memory-bytes"), *metric;
	size_t i;

	if (json_is_integer(user) && json_is_integer(system))
		add_number(measurements, "cpu", "ns", json_number_value(user) + json_number_value(system), index);
	if (json_is_integer(memory))
		add_number(measurements, "memory", "bytes", json_number_value(memory), index);
	json_array_foreach(json_object_get(run, "metrics"), i, metric)
	{
		add_metric(measurements, metric, index);
	}
}
