// SPDX-License-Identifier: BSD-2-Clause
/* Ticks of profile and interval probes: a source of the main loop that makes the vCPUs leave the guest. */
#include "probe/probe_priv.h"

struct probe_timer {
	GSource source;
	struct probe *probe;
	int64_t next_us; /* g_get_monotonic_time() */
};

struct tick {
	struct probe *probe;
	unsigned vcpu;
};

static void tick_on_vcpu(void *data)
{
	const struct tick *tick = data;

	probe_event_tick(tick->probe, tick->vcpu);
}

static void tick(struct probe *probe)
{
	struct guest *guest = probe->set->hub->guest;
	unsigned n = probe_sources[probe->spec.kind].every_vcpu ? guest->vcpus : 1;

	for (unsigned i = 0; i < n; i++) {
		struct tick tick = {probe, i};

		guest->ops->run_on_vcpu(guest, i, tick_on_vcpu, &tick);
	}
}

static gboolean timer_dispatch(GSource *source, GSourceFunc callback G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
	struct probe_timer *timer = (struct probe_timer *)source;
	int64_t period_us = (int64_t)timer->probe->spec.period_ns / 1000;
	int64_t late = (g_get_monotonic_time() - timer->next_us) / period_us;

	/* Missed ticks are not made up for: they would all sample the same moment. */
	timer->probe->set->skiptick += (uint64_t)MAX(late, 0);
	timer->next_us += (MAX(late, 0) + 1) * period_us;
	tick(timer->probe);
	g_source_set_ready_time(source, timer->next_us);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs timer_funcs = {.dispatch = timer_dispatch};

GSource *probe_timer_start(struct probe *probe)
{
	GSource *source = g_source_new(&timer_funcs, sizeof(struct probe_timer));
	struct probe_timer *timer = (struct probe_timer *)source;

	timer->probe = probe;
	timer->next_us = g_get_monotonic_time() + (int64_t)probe->spec.period_ns / 1000;
	g_source_set_static_name(source, "probe timer");
	g_source_set_ready_time(source, timer->next_us);
	g_source_attach(source, NULL);
	return source;
}

void probe_timer_stop(GSource *timer)
{
	if (!timer)
		return;
	g_source_destroy(timer);
	g_source_unref(timer);
}
