// SPDX-License-Identifier: BSD-2-Clause
/*
 * Route "monitor": the vCPUs' registers by QEMU's `info registers`, at a low rate. It works with every accelerator and
 * takes no part in what the host counts. QEMU hands the question to the vCPU's thread between two instructions, which
 * favours none of them; the guest runs on before its stack is read, so that a call chain may be torn.
 */
#include <errno.h>
#include <string.h>

#include "attach/qemu.h"
#include "lib/record/clock.h"

#define FREQUENCY_HZ_DEFAULT 49u
#define FREQUENCY_HZ_MAX 200u

/* [I] immutable while the thread runs, [T] that thread only. */
struct monitor_route {
	struct qemu_guest *qemu;            /* [I] */
	struct counter_route_config config; /* [I] */
	uint64_t interval_ns;               /* [I] */
	GThread *thread;                    /* [I] */
	GMutex lock;                        /* of `stop` */
	GCond wake;
	bool stop;
	struct counter_statistics statistics[GUEST_VCPUS_MAX]; /* [T] */
};

static void take(struct monitor_route *route, const struct seen_vcpu *registers, uint64_t time_ns)
{
	struct counter_statistics *statistics = &route->statistics[registers->vcpu];
	const struct counter_sample sample = {
		.vcpu = registers->vcpu,
		.overflow = {.event = 0, .period = route->interval_ns},
		.time_ns = time_ns,
		.in_guest = true,
		.regs = registers->regs,
	};

	statistics->expected++;
	if (registers->halted) {
		statistics->idle++;
	} else {
		statistics->overflows++;
		route->config.take(route->config.data, &sample);
	}
	route->config.statistics(route->config.data, registers->vcpu, statistics);
}

/* A monitor that does not answer (libvirtd restarts, QEMU saves its state) costs this sample. */
static void sample_all(struct monitor_route *route)
{
	struct seen_vcpu registers[GUEST_VCPUS_MAX];
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
	size_t n = qemu_guest_registers(route->qemu, registers, NULL);

	for (unsigned i = 0; n == 0 && i < route->qemu->guest.vcpus; i++) {
		route->statistics[i].expected++;
		route->statistics[i].throttled++;
		route->config.statistics(route->config.data, i, &route->statistics[i]);
	}
	for (size_t i = 0; i < n; i++)
		take(route, &registers[i], time_ns);
}

/* Sleeps until then; true when the route is to stop. */
static bool wait_until(struct monitor_route *route, gint64 time_us)
{
	g_mutex_lock(&route->lock);
	while (!route->stop && g_cond_wait_until(&route->wake, &route->lock, time_us))
		continue;
	bool stop = route->stop;

	g_mutex_unlock(&route->lock);
	return stop;
}

/* A guest that is paused stands still: its registers say nothing about time. */
static void *sampling_thread(void *data)
{
	struct monitor_route *route = data;
	const gint64 interval_us = (gint64)(route->interval_ns / 1000);
	gint64 due_us = g_get_monotonic_time() + interval_us;

	while (!wait_until(route, due_us)) {
		if (qemu_guest_runs(route->qemu))
			sample_all(route);
		/* What could not be done in time is not made up for, which would bunch samples together. */
		due_us = MAX(due_us + interval_us, g_get_monotonic_time());
	}
	return NULL;
}

static char *unavailable(struct guest *guest)
{
	const struct qemu_guest *qemu = (const struct qemu_guest *)guest;

	return qemu->monitor ? NULL : g_strdup(qemu->monitor_why ? qemu->monitor_why : "there is none");
}

static bool start(struct guest *guest, const struct counter_route_config *config, GError **error)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;

	if (config->n_events != 1 || !config->events[0].backend->counts_time) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
		            "cannot sample %s by the route monitor, which samples one clock (-e timer); leave -e away",
		            config->events[0].name);
		return false;
	}
	struct monitor_route *route = g_new0(struct monitor_route, 1);

	route->qemu = qemu;
	route->config = *config;
	route->interval_ns =
		config->rate.period ? config->rate.period : UINT64_C(1000000000) / config->rate.frequency_hz;
	route->interval_ns = MAX(route->interval_ns, UINT64_C(1000000000) / FREQUENCY_HZ_MAX);
	g_mutex_init(&route->lock);
	g_cond_init(&route->wake);
	route->thread = g_thread_new("monitor route", sampling_thread, route);
	qemu->monitor_route = route;
	return true;
}

static void stop(struct guest *guest)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	struct monitor_route *route = g_steal_pointer(&qemu->monitor_route);

	g_mutex_lock(&route->lock);
	route->stop = true;
	g_cond_signal(&route->wake);
	g_mutex_unlock(&route->lock);
	g_thread_join(route->thread);
	g_mutex_clear(&route->lock);
	g_cond_clear(&route->wake);
	g_free(route);
}

static const char *gives(struct guest *guest G_GNUC_UNUSED)
{
	return "tasks; kernel chains: ORC or frame pointers, may be torn; user chains: unwind tables or frame pointers, may be torn";
}

const struct counter_route route_monitor = {
	.name = "monitor",
	.summary = "registers by QEMU's monitor, at 200 Hz at most; any accelerator; call chains may be torn",
	.gives = gives,
	.event_default = "timer",
	.frequency_hz_default = FREQUENCY_HZ_DEFAULT,
	.frequency_hz_max = FREQUENCY_HZ_MAX,
	.registers = true,
	.unavailable = unavailable,
	.start = start,
	.stop = stop,
};
