// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_config.h"

#include <vprof/control.h>
#include <vprof/ring.h>

G_DEFINE_QUARK(vprof_session_error, session_error)

/* Fills in what the configuration leaves open. */
static void config_complete(struct session_config *config, const struct counter_route *route, const char **why)
{
	*why = NULL;
	if (config->n_events == 0) {
		config->n_events = 1;
		if (!route || !route->event_default ||
		    !counter_event_parse(route->event_default, &config->events[0], NULL))
			counter_event_default(&config->events[0], why);
	}
	if (config->rate.frequency_hz == 0 && config->rate.period == 0 && config->events[0].backend->steps)
		config->rate.period = 1;
	if (config->rate.frequency_hz == 0 && config->rate.period == 0)
		config->rate.frequency_hz = route ? route->frequency_hz_default : VPROF_FREQUENCY_HZ_DEFAULT;
	if (config->ring_data_bytes == 0)
		config->ring_data_bytes = VPROF_RING_DATA_BYTES_DEFAULT;
}

static bool steps_check(const struct session_config *config, GError **error)
{
	bool steps = false;

	for (size_t i = 0; i < config->n_events; i++)
		steps |= config->events[i].backend->steps;
	if (steps && (config->n_events > 1 || config->stall)) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot start a session with the event steps and %s",
		            config->stall ? "stall: a step always waits for room in its ring"
		                          : "another event: nothing else can be counted while a vCPU is stepped");
		return false;
	}
	return true;
}

static bool config_check(const struct session_config *config, GError **error)
{
	if (config->n_events > COUNTER_EVENTS_MAX) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot start a session with %zu events; it can have %u", config->n_events,
		            COUNTER_EVENTS_MAX);
		return false;
	}
	if (config->call_depth > UNWIND_DEPTH_MAX) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot record call chains of %u frames; the limit is %u", config->call_depth,
		            UNWIND_DEPTH_MAX);
		return false;
	}
	if (!steps_check(config, error))
		return false;
	for (size_t i = 0; i < config->n_events; i++)
		if (!counter_rate_check(&config->rate, &config->events[i], error))
			return false;
	return true;
}

/* Removes from the configuration what the route cannot see; an error if it was asked for. */
static bool route_restrict(const struct counter_route *route, struct session_config *config, GError **error)
{
	if (route->frequency_hz_max != 0 && config->rate.frequency_hz > route->frequency_hz_max) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "frequency %u Hz is too high for the route %s; its maximum is %u Hz",
		            config->rate.frequency_hz, route->name, route->frequency_hz_max);
		return false;
	}
	if (config->stall) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot pause counters of the route %s; when a ring is full, it drops samples",
		            route->name);
		return false;
	}
	if (config->host && !route->host) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot record the host's side by the route %s, which sees only the guest; omit --host",
		            route->name);
		return false;
	}
	if (route->registers)
		return true;
	if (config->call_graph != SESSION_CALL_GRAPH_NONE) {
		g_set_error(
			error, SESSION_ERROR, SESSION_ERROR_RANGE,
			"cannot record call chains by the route %s, which sees no registers; omit -g, or choose another route",
			route->name);
		return false;
	}
	if (!config->no_tasks)
		config->no_tasks_why = "they cannot be told apart without registers, which this route does not see";
	config->no_tasks = true;
	return true;
}

bool session_config_settle(struct session_config *config, const struct counter_route *route, const char **event_why,
                           GError **error)
{
	config_complete(config, route, event_why);
	return config_check(config, error) && (!route || route_restrict(route, config, error));
}

void session_config_attr(const struct session_config *config, bool cgroups, unsigned event,
                         struct perf_event_attr *attr)
{
	counter_event_attr(&config->events[event], &config->rate, attr);
	if (session_config_has_chains(config) || config->host)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (cgroups)
		attr->sample_type |= PERF_SAMPLE_CGROUP;
	attr->exclude_host = attr->exclude_host && !config->host;
	/* perf wants records other than samples from one event only. */
	attr->context_switch = event == 0 && config->switches;
	attr->cgroup = event == 0 && cgroups;
}

uint64_t session_event_id(unsigned event, unsigned vcpu)
{
	/* Not 0, which perf takes for a missing id; the same in every session. */
	return (uint64_t)event * GUEST_VCPUS_MAX + vcpu + 1;
}
