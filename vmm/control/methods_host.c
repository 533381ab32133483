// SPDX-License-Identifier: BSD-2-Clause
/* query-host */
#include "control/host_json.h"
#include "control/method_priv.h"
#include "counter/host_pmu.h"
#include "counter/route.h"

static json_t *event_json(const char *name)
{
	g_autoptr(GError) error = NULL;
	struct counter_event event;
	bool usable = counter_event_parse(name, &event, &error);

	return json_pack("{s:s, s:s*, s:b, s:s*, s:s*}", "name", name, "summary", counter_event_summary(name), "usable",
	                 usable, "backend", usable ? event.backend->name : NULL, "why", usable ? NULL : error->message);
}

json_t *control_host_events(void)
{
	json_t *list = json_array();

	for (const char *const *name = counter_event_names(); *name; name++)
		json_array_append_new(list, event_json(*name));
	return list;
}

static json_t *backend_json(const struct counter_backend *backend)
{
	json_t *events = json_array();

	for (const char *const *name = counter_event_names(); *name; name++) {
		struct counter_event event;

		if (counter_event_parse(*name, &event, NULL) && event.backend == backend)
			json_array_append_new(events, json_string(*name));
	}
	bool usable = json_array_size(events) > 0;

	return json_pack("{s:s, s:b, s:b, s:b, s:o, s:s*}", "name", backend->name, "usable", usable, "counts-time",
	                 backend->counts_time, "guest-only", backend->guest_only, "events", events, "why",
	                 usable ? NULL : "none of its events can be counted here");
}

json_t *control_host_backends(void)
{
	json_t *list = json_array();

	for (size_t i = 0; counter_backends[i]; i++)
		json_array_append_new(list, backend_json(counter_backends[i]));
	return list;
}

static json_t *pmu_counters_json(const struct host_pmu_counters *counters)
{
	return json_pack("{s:i, s:i}", "counters", (int)counters->counters, "width", (int)counters->width);
}

json_t *control_host_pmu(void)
{
	struct host_pmu pmu;

	if (!host_pmu_read(&pmu))
		return json_null();
	return json_pack("{s:s, s:i, s:o, s:o}", "name", pmu.name, "version", (int)pmu.version, "general",
	                 pmu_counters_json(&pmu.general), "fixed", pmu_counters_json(&pmu.fixed));
}

static json_t *route_json(struct guest *guest, const struct counter_route *route)
{
	g_autofree char *why = route->unavailable(guest);

	return json_pack("{s:s, s:s, s:b, s:s*}", "name", route->name, "summary", route->summary, "usable", why == NULL,
	                 "why", why);
}

json_t *control_host_routes(struct guest *guest)
{
	json_t *list = guest->routes ? json_array() : NULL;

	for (size_t i = 0; guest->routes && guest->routes[i]; i++)
		json_array_append_new(list, route_json(guest, guest->routes[i]));
	return list;
}

json_t *method_query_host(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	return json_pack("{s:o, s:o, s:o, s:o*, s:i}", "pmu", control_host_pmu(), "events", control_host_events(),
	                 "backends", control_host_backends(), "routes", control_host_routes(call->server->guest),
	                 "counters", (int)COUNTERS_MAX);
}
