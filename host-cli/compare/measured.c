// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <vprof/recording.h>

#include "compare/measured_priv.h"
#include "ui/text.h"

G_DEFINE_QUARK(vprof_measured_error, measured_error)

#define WAITING "waiting"

static const char *const waiting_names[] = {
#define X(id, letter, name) [id] = WAITING "-" name,
	[VPROF_TASK_RUNNING] = WAITING, VPROF_TASK_STATES(X)
#undef X
};

const char *measured_waiting_name(unsigned state)
{
	return waiting_names[state];
}

bool measured_is_waiting(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(waiting_names); i++)
		if (strcmp(waiting_names[i], name) == 0)
			return true;
	return false;
}

bool measured_is_own(const char *name)
{
	static const char *const names[] = {"total", "guest", "kernel", "user", "vmm", "wall", "cpu", "memory", NULL};

	return g_strv_contains(names, name) || measured_is_waiting(name);
}

/* Whether what was measured under them is counted, see struct measurements. */
static bool conditions_count(const json_t *conditions)
{
	const char *event = member_text(conditions, "event");

	return event && g_str_has_prefix(event, MEASURED_EVENT_STEPS);
}

struct measured *measured_new(const char *path, const char *unit, size_t n_repetitions, json_t *conditions)
{
	struct measured *measured = g_new0(struct measured, 1);
	struct stat status;

	measured->path = g_strdup(path);
	measured->mode = stat(path, &status) == 0 ? status.st_mode & 0666 : 0600;
	measured->measurements = measurements_new(unit, n_repetitions);
	measured->measurements->counted = conditions_count(conditions);
	measured->conditions = conditions;
	return measured;
}

void measured_free(struct measured *measured)
{
	if (!measured)
		return;
	measurements_free(measured->measurements);
	json_decref(measured->conditions);
	g_free(measured->path);
	g_free(measured->typical);
	g_free(measured);
}

static char *condition_text(const json_t *value)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	char *copy = g_strdup(text ? text : "not known");

	free(text);
	return copy;
}

static bool condition_equal(const struct measured *base, const struct measured *now, const char *name, GError **error)
{
	json_t *was = json_object_get(base->conditions, name), *is = json_object_get(now->conditions, name);
	g_autofree char *was_text = condition_text(was), *is_text = condition_text(is);

	if (was && is && json_equal(was, is))
		return true;
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_INCOMPARABLE,
	            "%s and %s cannot be compared: %s is %s in the one and %s in the other", base->path, now->path,
	            name, was_text, is_text);
	return false;
}

bool measured_comparable(const struct measured *base, const struct measured *now, GError **error)
{
	const char *name;
	json_t *value;

	json_object_foreach(base->conditions, name, value) {
		if (!condition_equal(base, now, name, error))
			return false;
	}
	json_object_foreach(now->conditions, name, value) {
		if (!condition_equal(base, now, name, error))
			return false;
	}
	return true;
}
