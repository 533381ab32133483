// SPDX-License-Identifier: BSD-2-Clause
/* Counters that are read, and never overflow. */
#include <fcntl.h>

#include "counter/counter_priv.h"

struct counter_meter {
	struct counter counter;
};

bool counter_meter_check(const struct counter_event *event, GError **error)
{
	if (event->backend->steps) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
		            "cannot count %s: only a session takes them, and nothing beside it; use vprof run --exact",
		            event->name);
		return false;
	}
	if (event->backend->guest_only || (event->user && event->kernel))
		return true;
	g_set_error(
		error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
		"cannot count %s: a clock counts the vCPU thread whatever the guest's mode; count an event of the PMU, or sample it",
		event->name);
	return false;
}

struct counter_meter *counter_meter_open(const struct counter_event *event, GError **error)
{
	const struct counter_rate never = {0};
	struct perf_event_attr attr;

	if (!counter_meter_check(event, error))
		return NULL;
	counter_event_attr(event, &never, &attr);
	attr.sample_type = 0;
	attr.wakeup_events = 0;
	struct counter_meter *meter = g_new0(struct counter_meter, 1);

	meter->counter = (struct counter){.event = *event, .fd = -1};
	if (!event->backend->ops->open(&meter->counter, NULL, &attr, error)) {
		g_free(meter);
		return NULL;
	}
	event->backend->ops->enable(&meter->counter);
	return meter;
}

void counter_meter_close(struct counter_meter *meter)
{
	if (!meter)
		return;
	meter->counter.event.backend->ops->close(&meter->counter);
	g_free(meter);
}

bool counter_meter_read(struct counter_meter *meter, struct counter_reading *reading)
{
	return meter->counter.event.backend->ops->read(&meter->counter, reading);
}

int counter_meter_descriptor(const struct counter_meter *meter)
{
	return meter->counter.fd >= 0 ? fcntl(meter->counter.fd, F_DUPFD_CLOEXEC, 0) : -1;
}
