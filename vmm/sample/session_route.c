// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_route.h"

static void route_take(void *data, const struct counter_sample *sample)
{
	struct sampler *samplers = data;

	sampler_take(&samplers[sample->vcpu], sample);
}

static void route_account(void *data, unsigned vcpu, const struct counter_totals *totals)
{
	struct sampler *samplers = data;

	sampler_account(&samplers[vcpu], totals);
}

bool session_route_restrict(const struct counter_route *route, struct session_config *config, GError **error)
{
	if (route->frequency_hz_max != 0 && config->rate.frequency_hz > route->frequency_hz_max) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "frequency %u Hz is too much for the route %s, which takes up to %u Hz; give a lower one",
		            config->rate.frequency_hz, route->name, route->frequency_hz_max);
		return false;
	}
	if (config->stall) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot stall counters by the route %s; when a ring is full, its samples are dropped",
		            route->name);
		return false;
	}
	if (config->host && !route->host) {
		g_set_error(
			error, SESSION_ERROR, SESSION_ERROR_RANGE,
			"cannot record the host's side by the route %s, which sees the guest alone; leave --host away",
			route->name);
		return false;
	}
	if (route->registers)
		return true;
	if (config->call_graph != SESSION_CALL_GRAPH_NONE) {
		g_set_error(
			error, SESSION_ERROR, SESSION_ERROR_RANGE,
			"cannot record call chains by the route %s, which sees no registers; leave -g away, or take "
			"another route",
			route->name);
		return false;
	}
	if (!config->no_tasks)
		config->no_tasks_why = "they cannot be told apart without registers, which this route does not see";
	config->no_tasks = true;
	return true;
}

static void samplers_close(struct guest *guest, struct sampler *samplers)
{
	for (unsigned i = 0; i < guest->vcpus; i++)
		sampler_close(&samplers[i]);
}

bool session_route_start(struct guest *guest, const struct counter_route *route, struct sampler *samplers,
                         const struct sampler_config *config, struct ring *const *rings, GError **error)
{
	const struct counter_route_config wanted = {
		.events = config->session->events,
		.n_events = config->session->n_events,
		.rate = config->session->rate,
		.unwind = config->unwind,
		.tasks = config->kernel ? &config->kernel->tasks : NULL,
		.interrupt_stack = config->interrupt_stack,
		.host = config->session->host,
		.take = route_take,
		.account = route_account,
		.data = samplers,
	};

	for (unsigned i = 0; i < guest->vcpus; i++)
		sampler_open_route(&samplers[i], config, rings[i]);
	if (route->start(guest, &wanted, error))
		return true;
	samplers_close(guest, samplers);
	return false;
}

void session_route_stop(struct guest *guest, const struct counter_route *route, struct sampler *samplers)
{
	route->stop(guest);
	samplers_close(guest, samplers);
}
