// SPDX-License-Identifier: BSD-2-Clause
/*
 * The counters of one vCPU thread, and the schedule of their overflows.
 *
 * A period that is always the same may run in step with the guest's tick, and then sees always the same code.
 * Therefore each is varied by up to JITTER_PERCENT. Setting a period costs a system call (0.9 us against 0.6 us for
 * the read that every overflow needs anyway, measured on the build machine), so one period serves ARM_EVERY overflows:
 * within these the phase against a tick moves by up to ARM_EVERY x JITTER_PERCENT = 40 % of a period, in a direction
 * that the next arming draws anew.
 *
 * Setting a period also starts it anew, somewhat after the overflow. `due` is where the run of periods would end
 * without this delay; the next run is shortened by what the last was late, and so the rate is the one asked for.
 *
 * The period of a sample is what was counted since the last one, whatever was armed: periods add up to the counter.
 */
#include <time.h>

#include "counter/counter_priv.h"
#include "lib/record/record.h"
#include "lib/record/xorshift.h"

#define JITTER_PERCENT 5u
#define ARM_EVERY 8u

/*
 * Frequency mode of counted events: a low pass like that of perf_adjust_period (kernel/events/core.c). It is left out
 * for the first guesses, and when events have become so rare that with small steps the next samples would be long in
 * coming.
 */
#define ADAPT_SHARE 8.0
#define ADAPT_FAST 8u
#define ADAPT_RARE 4.0
#define ADAPT_PERIOD_MIN 1000.0
#define ADAPT_PERIOD_MAX ((double)(UINT64_C(1) << 48))
/* An armed period that is off by more than this share is replaced before the end of its run. */
#define ADAPT_DRIFT 8u

/*
 * A timer tick that found less than this share of its period consumed met a thread that slept: the tick itself wakes
 * it, which takes some ten microseconds.
 */
#define IDLE_SHARE 4u

/* Uniform in period +- JITTER_PERCENT. */
static uint64_t jittered(struct counter_set *set, uint64_t period)
{
	uint64_t spread = period / 100 * JITTER_PERCENT;

	return period - spread + xorshift_next(&set->random) % (2 * spread + 1);
}

/*
 * At the end of a run of periods: overflows that had to come in it and were no samples of their own, because they came
 * together with another one, or the host left them out. Not before the end: one that is seen late may be followed at
 * once by the next.
 */
static void run_end(struct counter *counter)
{
	uint64_t due = (counter->value - counter->armed_at) / counter->armed;

	counter->throttled += due > counter->run_samples ? due - counter->run_samples : 0;
	counter->armed_at = counter->value;
	counter->run_samples = 0;
	counter->rearm = false;
}

/* The period to arm for the next ARM_EVERY overflows. */
static uint64_t schedule(struct counter_set *set, struct counter *counter)
{
	/* Whole periods that the host withheld are not made up for, nor is a timer that ran ahead of its thread. */
	if (counter->value > counter->due + counter->nominal || counter->value + counter->nominal < counter->due) {
		counter->withheld += ((double)counter->value - (double)counter->due) / (double)counter->nominal;
		counter->due = counter->value;
	}
	counter->due += ARM_EVERY * jittered(set, counter->nominal);
	counter->armed = (counter->due - counter->value) / ARM_EVERY;
	return counter->armed;
}

static bool adapts(const struct counter_set *set, const struct counter *counter)
{
	return set->rate.frequency_hz != 0 && !counter->event.backend->counts_time;
}

/* `count` events took `elapsed_ns`: moves the nominal period towards the frequency asked for. */
static void adapt(struct counter_set *set, struct counter *counter, uint64_t count, uint64_t elapsed_ns)
{
	if (elapsed_ns == 0)
		return;
	double wanted = (double)count * 1e9 / ((double)elapsed_ns * set->rate.frequency_hz);
	double nominal = (double)counter->nominal;

	if (counter->adapted < ADAPT_FAST || wanted < nominal / ADAPT_RARE) {
		counter->adapted++;
		nominal = wanted;
	} else {
		nominal += (wanted - nominal) / ADAPT_SHARE;
	}
	counter->nominal = (uint64_t)CLAMP(nominal, ADAPT_PERIOD_MIN, ADAPT_PERIOD_MAX);
	if (counter->armed > counter->nominal + counter->nominal / ADAPT_DRIFT ||
	    counter->armed < counter->nominal - counter->nominal / ADAPT_DRIFT) {
		counter->due = counter->value;
		counter->rearm = true;
	}
}

/* The reading of the counter; if it does not answer, what the armed period promised. */
static struct counter_reading reading_now(struct counter *counter)
{
	struct counter_reading now;

	if (!counter->event.backend->ops->read(counter, &now) || now.value < counter->value)
		now = (struct counter_reading){.value = counter->value + counter->armed,
		                               .running_ns = counter->running_ns};
	return now;
}

static void reading_take(struct counter *counter, const struct counter_reading *now)
{
	counter->expected += (double)(now->value - counter->value) / (double)counter->nominal;
	counter->value = now->value;
	counter->running_ns = now->running_ns;
}

/* True when the thread slept through most of the time of `ticks` timer ticks, until now. */
static bool slept(struct counter *counter, uint64_t now, unsigned ticks)
{
	uint64_t ran = now - counter->ticked;

	counter->ticked = now;
	return counter->event.backend->ticks_when_idle && ran < counter->armed / IDLE_SHARE * ticks;
}

/* Makes one sample of the overflows taken: its period, or 0 when it is none. */
static uint64_t overflow_period(struct counter_set *set, struct counter *counter, unsigned taken)
{
	struct counter_reading now = reading_now(counter);
	uint64_t delta = now.value - counter->value;
	uint64_t elapsed_ns = now.running_ns - counter->running_ns;

	counter->signals += taken;
	/* The time that it did run is part of the next sample. */
	if (slept(counter, now.value, taken)) {
		counter->idle += taken;
		return 0;
	}
	reading_take(counter, &now);
	counter->overflows++;
	counter->run_samples++;
	if (adapts(set, counter) && !counter->stopped)
		adapt(set, counter, delta, elapsed_ns);
	if (counter->run_samples >= ARM_EVERY || counter->rearm) {
		run_end(counter);
		counter->event.backend->ops->set_period(counter, schedule(set, counter));
	}
	return delta;
}

size_t counter_set_collect(struct counter_set *set, bool interrupted, bool after_exit,
                           struct counter_overflow overflows[COUNTER_EVENTS_MAX])
{
	unsigned taken[COUNTER_EVENTS_MAX] = {0};
	size_t n = 0;

	if (!set->delivery->ops->take(set, interrupted, after_exit, taken))
		return 0;
	for (unsigned i = 0; i < set->n; i++) {
		uint64_t period = taken[i] ? overflow_period(set, &set->counters[i], taken[i]) : 0;

		if (period != 0)
			overflows[n++] = (struct counter_overflow){i, period};
	}
	return n;
}

/* Gives the space of what was read back when there is no more. */
static bool throttle_read(struct counter *counter, struct record_throttle *throttle)
{
	const struct perf_event_header *record;
	size_t bytes;

	while ((record = ring_reader_next(counter->ring, &bytes)))
		if (record_throttle_decode(record, bytes, throttle))
			return true;
	ring_reader_release(counter->ring);
	return false;
}

bool counter_set_throttle(struct counter_set *set, struct counter_throttle *throttle)
{
	struct record_throttle read;

	for (unsigned i = 0; i < set->n; i++) {
		struct counter *counter = &set->counters[i];

		if (!counter->ring || !throttle_read(counter, &read))
			continue;
		counter->stopped = !read.ends;
		*throttle = (struct counter_throttle){i, read.ends, read.time_ns};
		return true;
	}
	return false;
}

void counter_set_statistics(const struct counter_set *set, struct counter_statistics *statistics)
{
	*statistics = (struct counter_statistics){.ignored = counter_signal_ignored() - set->ignored};
	for (size_t i = 0; i < set->n; i++) {
		const struct counter *counter = &set->counters[i];

		statistics->overflows += counter->overflows;
		statistics->throttled += counter->throttled;
		statistics->idle += counter->idle;
		statistics->signals += counter->signals;
		statistics->expected += (uint64_t)counter->expected;
		statistics->late += (uint64_t)MAX(counter->withheld - (double)counter->throttled, 0);
	}
}

bool counter_set_pending(const struct counter_set *set)
{
	return atomic_load_explicit(&set->signalled, memory_order_relaxed);
}

void counter_set_pause(struct counter_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		set->counters[i].event.backend->ops->pause(&set->counters[i]);
}

void counter_set_resume(struct counter_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		set->counters[i].event.backend->ops->resume(&set->counters[i]);
}

void counter_set_finish(struct counter_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		struct counter *counter = &set->counters[i];
		struct counter_reading now;

		if (counter->event.backend->ops->read(counter, &now) && now.value >= counter->value)
			reading_take(counter, &now);
		run_end(counter);
	}
}

static uint64_t random_seed(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	/* Threads that open at the same nanosecond have different stacks. */
	return ((uint64_t)now.tv_nsec << 32 ^ (uintptr_t)&now) | 1;
}

static bool counter_open(struct counter_set *set, const struct counter_event *event, GError **error)
{
	struct counter *counter = &set->counters[set->n];
	struct perf_event_attr attr;

	counter_event_attr(event, &set->rate, &attr);
	*counter = (struct counter){.event = *event, .cookie = COUNTER_COOKIE(set->tag, set->n), .fd = -1};
	counter->nominal = attr.sample_period;
	attr.sample_period = schedule(set, counter);
	if (!event->backend->ops->open(counter, set->delivery, &attr, error))
		return false;
	set->n++;
	return true;
}

struct counter_set *counter_set_open(const struct counter_delivery *delivery, const struct vcpu_port *port,
                                     const struct counter_event *events, size_t n_events,
                                     const struct counter_rate *rate, GError **error)
{
	struct counter_set *set = g_new0(struct counter_set, 1);

	set->delivery = delivery;
	set->port = *port;
	set->rate = *rate;
	set->random = random_seed();
	set->ignored = counter_signal_ignored();
	bool open = delivery->ops->attach(set, error);

	for (size_t i = 0; open && i < n_events; i++)
		open = counter_open(set, &events[i], error);
	if (!open) {
		counter_set_close(set);
		return NULL;
	}
	for (size_t i = 0; i < n_events; i++)
		events[i].backend->ops->enable(&set->counters[i]);
	return set;
}

void counter_set_close(struct counter_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n; i++)
		set->counters[i].event.backend->ops->close(&set->counters[i]);
	set->delivery->ops->detach(set);
	g_free(set);
}
