// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_config.h"

#include <vprof/control.h>
#include <vprof/recording.h>
#include <vprof/ring.h>

#include "stream/sample_stream.h"

G_DEFINE_QUARK(vprof_session_error, session_error)

/* Nothing counts them: their samples are made of the guest's memory. */
static const struct counter_backend memory_backend = {.name = "memory", .counts_time = true};

static struct counter_event waiting_event(const char *name)
{
	struct counter_event event = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.user = true,
		.kernel = true,
		.backend = &memory_backend,
	};

	g_strlcpy(event.name, name, sizeof(event.name));
	return event;
}

/* The default, or what the host allows where that is less. */
static void rate_choose(struct session_config *config, uint32_t frequency_hz)
{
	const uint32_t most = counter_frequency_max(&config->events[0]);

	config->rate.frequency_hz = MIN(frequency_hz, most);
	if (most >= frequency_hz)
		return;
	g_autofree char *text = g_strdup_printf(
		"samples are taken at %u Hz instead of %u Hz: kernel.perf_event_max_sample_rate is that low on this host; sysctl can raise it",
		most, frequency_hz);
	config->rate_why = g_intern_string(text);
}

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
		rate_choose(config, route ? route->frequency_hz_default : VPROF_FREQUENCY_HZ_DEFAULT);
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
	if (!config_check(config, error) || (route && !route_restrict(route, config, error)))
		return false;
	if (config->wall_hz != 0)
		config->events[session_config_wall(config)] = waiting_event(VPROF_WALL_EVENT);
	if (config->off_cpu)
		config->events[session_config_off_cpu(config)] = waiting_event(VPROF_OFF_CPU_EVENT);
	return true;
}

/* That of one is how often it is looked for; of every wait, there is a sample. */
static struct counter_rate rate_of(const struct session_config *config, unsigned event)
{
	if (event < config->n_events)
		return config->rate;
	if (config->off_cpu && event == session_config_off_cpu(config))
		return (struct counter_rate){.period = 1};
	return (struct counter_rate){.frequency_hz = config->wall_hz};
}

void session_config_attr(const struct session_config *config, bool cgroups, unsigned event,
                         struct perf_event_attr *attr)
{
	const struct counter_rate rate = rate_of(config, event);

	counter_event_attr(&config->events[event], &rate, attr);
	if (session_config_has_chains(config) || config->host)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (event >= config->n_events)
		attr->sample_type |= PERF_SAMPLE_RAW;
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

bool session_rings_make(struct ring **rings, unsigned n, size_t data_bytes, GError **error)
{
	g_autoptr(GError) cause = NULL;

	if (sample_rings_make(rings, n, data_bytes, &cause))
		return true;
	const bool range = g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_INVAL);

	g_set_error_literal(error, SESSION_ERROR, range ? SESSION_ERROR_RANGE : SESSION_ERROR_SYSTEM, cause->message);
	return false;
}
