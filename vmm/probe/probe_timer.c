// SPDX-License-Identifier: BSD-2-Clause
/* Ticks of profile and interval probes: a source of the main loop that makes the vCPUs leave the guest. */
#include "probe/placement_priv.h"

struct timer {
	struct placement base;
	GSource *source; /* while recording */
};

struct ticks {
	GSource source;
	struct probe *probe;
	int64_t next_us; /* g_get_monotonic_time() */
	void (*tick)(struct probe *probe);
};

struct tick {
	struct probe *probe;
	unsigned vcpu;
	bool wants_code; /* only if the vCPU is in the guest's own code */
};

static void tick_on_vcpu(void *data)
{
	const struct tick *tick = data;

	probe_event_tick(tick->probe, tick->vcpu, tick->wants_code);
}

static void profile_tick(struct probe *probe)
{
	struct guest *guest = probe->set->hub->guest;

	for (unsigned i = 0; i < guest->vcpus; i++)
		guest->ops->run_on_vcpu(guest, i, tick_on_vcpu, &(struct tick){probe, i, true});
}

/* A program at an interval is about the guest as a whole. */
static void interval_tick(struct probe *probe)
{
	struct guest *guest = probe->set->hub->guest;

	guest->ops->run_on_vcpu(guest, 0, tick_on_vcpu, &(struct tick){probe, 0, !probe->program});
}

static gboolean ticks_dispatch(GSource *source, GSourceFunc callback G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
	struct ticks *ticks = (struct ticks *)source;
	int64_t period_us = (int64_t)ticks->probe->spec.period_ns / 1000;
	int64_t late = (g_get_monotonic_time() - ticks->next_us) / period_us;

	/* Missed ticks are not made up for: they would all sample the same moment. */
	ticks->probe->set->skiptick += (uint64_t)MAX(late, 0);
	ticks->next_us += (MAX(late, 0) + 1) * period_us;
	ticks->tick(ticks->probe);
	g_source_set_ready_time(source, ticks->next_us);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs ticks_funcs = {.dispatch = ticks_dispatch};

static void timer_start(struct placement *placement, void (*tick)(struct probe *probe))
{
	struct timer *self = (struct timer *)placement;
	struct ticks *ticks;

	self->source = g_source_new(&ticks_funcs, sizeof(*ticks));
	ticks = (struct ticks *)self->source;
	ticks->probe = placement->probe;
	ticks->tick = tick;
	ticks->next_us = g_get_monotonic_time() + (int64_t)placement->probe->spec.period_ns / 1000;
	g_source_set_static_name(self->source, "probe timer");
	g_source_set_ready_time(self->source, ticks->next_us);
	g_source_attach(self->source, NULL);
}

static void profile_start(struct placement *self)
{
	timer_start(self, profile_tick);
}

static void interval_start(struct placement *self)
{
	timer_start(self, interval_tick);
}

static void timer_stop(struct placement *placement)
{
	struct timer *self = (struct timer *)placement;

	g_source_destroy(self->source);
	g_clear_pointer(&self->source, g_source_unref);
}

static bool timer_place(struct probe *probe, GError **error G_GNUC_UNUSED)
{
	placement_new(probe, sizeof(struct timer));
	return true;
}

const struct placement_ops placement_profile = {
	.place = timer_place, .remove = placement_free, .start = profile_start, .stop = timer_stop};
const struct placement_ops placement_interval = {
	.place = timer_place, .remove = placement_free, .start = interval_start, .stop = timer_stop};
