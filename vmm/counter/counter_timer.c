// SPDX-License-Identifier: BSD-2-Clause
/*
 * A POSIX timer that ticks by wall time and signals the vCPU thread. What a tick stands for is the thread's CPU time
 * since the last one, so that a halted guest gives no samples. (A timer on the CPU-time clock itself would be simpler,
 * were it not for what clock_timer_create says of those.)
 */
#include <errno.h>

#include "counter/counter_priv.h"
#include "lib/record/clock.h"

#define NS_PER_S UINT64_C(1000000000)

static const char *timer_unavailable(const struct counter_event *event)
{
	(void)event;
	return NULL; /* timer_create is POSIX; it can only run out of memory */
}

static bool timer_open(struct counter *counter, const struct counter_delivery *delivery,
                       const struct perf_event_attr *attr, GError **error)
{
	(void)attr;
	counter->base = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!delivery) /* each of them takes counter_signal() */
		return true;
	if (!clock_timer_create(CLOCK_MONOTONIC, counter_signal(), (int)counter->cookie, &counter->timer)) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_SYSTEM, "cannot create the timer of %s: %s",
		            counter->event.name, g_strerror(errno));
		return false;
	}
	counter->ticks = true;
	return true;
}

static void timer_close(struct counter *counter)
{
	if (counter->ticks)
		timer_delete(counter->timer);
}

static void timer_set_period(struct counter *counter, uint64_t period)
{
	struct itimerspec every = {
		.it_value = {(time_t)(period / NS_PER_S), (long)(period % NS_PER_S)},
	};

	every.it_interval = every.it_value;
	timer_settime(counter->timer, 0, &every, NULL);
}

static void timer_enable(struct counter *counter)
{
	counter->base = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (counter->ticks)
		timer_set_period(counter, counter->armed);
}

static void timer_pause(struct counter *counter)
{
	counter->paused_at = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (counter->ticks)
		timer_set_period(counter, 0);
}

static void timer_resume(struct counter *counter)
{
	counter->base += clock_ns(CLOCK_THREAD_CPUTIME_ID) - counter->paused_at;
	if (counter->ticks)
		timer_set_period(counter, counter->armed);
}

static bool timer_read(struct counter *counter, struct counter_reading *reading)
{
	reading->value = reading->running_ns = reading->enabled_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - counter->base;
	return true;
}

static const struct counter_backend_ops timer_ops = {
	.open = timer_open,
	.close = timer_close,
	.enable = timer_enable,
	.pause = timer_pause,
	.resume = timer_resume,
	.set_period = timer_set_period,
	.read = timer_read,
};

const struct counter_backend counter_backend_timer = {
	.name = "timer",
	.counts_time = true,
	.ticks_when_idle = true,
	.unavailable = timer_unavailable,
	.ops = &timer_ops,
};
