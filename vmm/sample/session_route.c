// SPDX-License-Identifier: BSD-2-Clause
/* A session of a guest in another process: a route takes its samples, on a thread of the route. */
#include "sample/session_priv.h"

void session_route_close(struct session *session)
{
	for (unsigned i = 0; i < session->guest->vcpus; i++)
		sampler_close(&session->samplers[i]);
}

static void route_take(void *data, const struct counter_sample *sample)
{
	struct session *session = data;

	g_mutex_lock(&session->route_lock);
	sampler_take(&session->samplers[sample->vcpu], sample);
	g_mutex_unlock(&session->route_lock);
}

static void route_statistics(void *data, unsigned vcpu, const struct counter_statistics *statistics)
{
	struct session *session = data;

	g_mutex_lock(&session->route_lock);
	sampler_statistics_set(&session->samplers[vcpu], statistics);
	g_mutex_unlock(&session->route_lock);
}

static void route_throttle(void *data, unsigned vcpu, const struct counter_throttle *throttle)
{
	struct session *session = data;

	g_mutex_lock(&session->route_lock);
	sampler_throttled(&session->samplers[vcpu], throttle);
	g_mutex_unlock(&session->route_lock);
}

bool session_route_start(struct session *session, const struct sampler_config *config, GError **error)
{
	const struct counter_route_config wanted = {
		.events = config->session->events,
		.n_events = config->session->n_events,
		.rate = config->session->rate,
		.unwind = config->unwind,
		.kernel = session->kernel.layout,
		.tasks = config->kernel != NULL,
		.user_stack = config->tables,
		.host = config->session->host,
		.take = route_take,
		.statistics = route_statistics,
		.throttle = route_throttle,
		.data = session,
	};

	for (unsigned i = 0; i < session->guest->vcpus; i++)
		sampler_open_route(&session->samplers[i], config, session->rings[i]);
	if (session->route->start(session->guest, &wanted, error))
		return true;
	session_route_close(session);
	return false;
}

void session_route_stop(struct session *session)
{
	session->route->stop(session->guest);
	session_route_close(session);
}
