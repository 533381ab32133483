// SPDX-License-Identifier: BSD-2-Clause
#include "attach/vcpu_statistics.h"

#include <string.h>

static bool says(const json_t *object, const char *member, const char *word)
{
	return g_strcmp0(json_string_value(json_object_get(object, member)), word) == 0;
}

GHashTable *vcpu_statistics_totals(const json_t *schemas)
{
	GHashTable *totals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	const json_t *schema, *one;
	size_t i, j;

	json_array_foreach(schemas, i, schema) {
		if (!says(schema, "provider", "kvm") || !says(schema, "target", "vcpu"))
			continue;
		json_array_foreach(json_object_get(schema, "stats"), j, one) {
			const char *name = json_string_value(json_object_get(one, "name"));

			if (name && says(one, "type", "cumulative"))
				g_hash_table_add(totals, g_strdup(name));
		}
	}
	return totals;
}

size_t vcpu_statistics_parse(const json_t *answer, GHashTable *totals,
                             struct guest_counter counters[GUEST_COUNTERS_MAX])
{
	const json_t *result, *one;
	size_t n = 0, i, j;

	json_array_foreach(answer, i, result) {
		json_array_foreach(json_object_get(result, "stats"), j, one) {
			const char *name = json_string_value(json_object_get(one, "name"));
			const json_t *value = json_object_get(one, "value");

			if (n == GUEST_COUNTERS_MAX || !name || !json_is_integer(value) ||
			    !g_hash_table_contains(totals, name))
				continue;
			g_strlcpy(counters[n].name, name, sizeof(counters[n].name));
			counters[n++].value = (uint64_t)json_integer_value(value);
		}
	}
	return n;
}

GHashTable *vcpu_statistics_open(struct monitor *monitor)
{
	json_t *schemas = monitor_ask(monitor, MONITOR_STATISTICS_NAMES, NULL);
	GHashTable *totals = schemas ? vcpu_statistics_totals(schemas) : NULL;

	json_decref(schemas);
	return totals;
}

size_t vcpu_statistics_read(struct monitor *monitor, const char *path, GHashTable *totals,
                            struct guest_counter counters[GUEST_COUNTERS_MAX])
{
	struct monitor_request request = {.command = MONITOR_STATISTICS};

	g_strlcpy(request.path, path, sizeof(request.path));
	json_t *answer = monitor_execute(monitor, &request, NULL);
	size_t n = vcpu_statistics_parse(answer, totals, counters);

	json_decref(answer);
	return n;
}
