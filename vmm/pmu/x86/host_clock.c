// SPDX-License-Identifier: BSD-2-Clause
/* Cycles, from the time that a thread ran in its guest. */
#include <errno.h>

#include "lib/record/clock.h"
#include "lib/record/xorshift.h"
#include "pmu/x86/host_priv.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
/* Between two ticks: uniform in this range, so that the ticks do not follow the timer of the guest. */
#define TICK_NS_MIN (NS_PER_MS * 3 / 4)
#define TICK_NS_SPREAD (NS_PER_MS / 2)
#define ALARM_NS_MIN UINT64_C(20000) /* an exit and the signal cost about as much */
#define ALARM_NS_MAX (UINT64_C(3600) * NS_PER_S)
#define NOT_ARMED UINT64_MAX

static uint64_t cycles(const struct pmu_clock *clock, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * clock->khz / NS_PER_MS);
}

/* Rounded up: after that time, the cycles have been counted. */
static uint64_t nanoseconds(const struct pmu_clock *clock, uint64_t count)
{
	unsigned __int128 ns = ((unsigned __int128)count * NS_PER_MS + clock->khz - 1) / clock->khz;
	return ns > ALARM_NS_MAX ? ALARM_NS_MAX : (uint64_t)ns;
}

static bool is_split(const struct pmu_counting *what)
{
	return what->user != what->kernel;
}

/* The guest time that the counter counts. */
static uint64_t position_ns(const struct pmu_clock *clock, const struct pmu_counting *what)
{
	return is_split(what) ? clock->split_ns[what->user] : clock->ran_ns;
}

static uint64_t position(const struct pmu_clock *clock, unsigned counter)
{
	return cycles(clock, position_ns(clock, &clock->counters[counter].what));
}

static bool runs(const struct pmu_clock *clock, unsigned counter)
{
	return (clock->running >> counter & 1) != 0;
}

static bool splits(const struct pmu_clock *clock)
{
	for (unsigned i = 0; i < PMU_COUNTERS; i++) {
		if (runs(clock, i) && is_split(&clock->counters[i].what))
			return true;
	}
	return false;
}

static void next_tick(struct pmu_clock *clock)
{
	clock->tick_ns = clock->ran_ns + TICK_NS_MIN + xorshift_next(&clock->random) % TICK_NS_SPREAD;
}

/* All time since the last tick goes to one mode. */
static void tick(struct pmu_clock *clock, bool user)
{
	clock->split_ns[user] += clock->ran_ns - clock->split_ns[0] - clock->split_ns[1];
	next_tick(clock);
}

bool pmu_clock_start(struct pmu_clock *clock, unsigned counter, const struct pmu_counting *what, uint64_t left)
{
	/* Time in which no counter needed the modes belongs to none. */
	if (is_split(what) && !splits(clock)) {
		clock->split_ns[0] = clock->ran_ns - clock->split_ns[1];
		next_tick(clock);
	}
	clock->counters[counter].what = *what;
	clock->counters[counter].taken = position(clock, counter);
	clock->running |= 1u << counter;
	pmu_clock_aim(clock, counter, left);
	return true;
}

void pmu_clock_stop(struct pmu_clock *clock, unsigned counter)
{
	clock->running &= ~(1u << counter);
}

uint64_t pmu_clock_take(struct pmu_clock *clock, unsigned counter)
{
	struct pmu_clock_counter *one = &clock->counters[counter];
	uint64_t now = position(clock, counter), counted = now - one->taken;

	one->taken = now;
	return counted;
}

void pmu_clock_aim(struct pmu_clock *clock, unsigned counter, uint64_t left)
{
	clock->counters[counter].target = clock->counters[counter].taken + left;
}

bool pmu_clock_due(const struct pmu_clock *clock)
{
	for (unsigned i = 0; i < PMU_COUNTERS; i++) {
		if (runs(clock, i) && position(clock, i) >= clock->counters[i].target)
			return true;
	}
	return false;
}

void pmu_clock_left(struct pmu_clock *clock, bool interrupted, bool user)
{
	if (!clock->in_guest)
		return;
	clock->in_guest = false;
	clock->ran_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - clock->entered_cpu_ns;
	if (clock_ns(CLOCK_MONOTONIC) < clock->alarm_wall_ns)
		return;
	clock->alarm_wall_ns = NOT_ARMED;
	/* The times of exits that the guest causes depend on their cause, so they are no samples of the time. */
	if (interrupted && clock->ran_ns >= clock->tick_ns)
		tick(clock, user);
}

/* Guest time until the next overflow that can come, or the next tick, or `in_ns`. */
static uint64_t alarm_in_ns(const struct pmu_clock *clock, uint64_t in_ns)
{
	uint64_t least = MIN(in_ns, ALARM_NS_MAX);

	for (unsigned i = 0; i < PMU_COUNTERS; i++) {
		if (!runs(clock, i))
			continue;
		uint64_t now = position(clock, i), target = clock->counters[i].target;
		least = MIN(least, target > now ? nanoseconds(clock, target - now) : 0);
	}
	if (splits(clock))
		least = MIN(least, clock->tick_ns > clock->ran_ns ? clock->tick_ns - clock->ran_ns : 0);
	return MAX(least, ALARM_NS_MIN);
}

static void arm(struct pmu_clock *clock, uint64_t wall_ns, uint64_t in_ns)
{
	const struct itimerspec at = {.it_value = {(time_t)(in_ns / NS_PER_S), (long)(in_ns % NS_PER_S)}};

	timer_settime(clock->timer, 0, &at, NULL);
	clock->alarm_wall_ns = wall_ns + in_ns;
}

void pmu_clock_enter(struct pmu_clock *clock, uint64_t in_ns)
{
	if (clock->running == 0 && in_ns == UINT64_MAX)
		return;
	/* One that is too early is armed again when it has come: guest time never runs ahead of wall time. */
	uint64_t wall_ns = clock_ns(CLOCK_MONOTONIC), alarm_ns = alarm_in_ns(clock, in_ns);
	if (wall_ns >= clock->alarm_wall_ns || wall_ns + alarm_ns < clock->alarm_wall_ns)
		arm(clock, wall_ns, alarm_ns);
	clock->in_guest = true;
	clock->entered_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void pmu_clock_init(struct pmu_clock *clock, uint64_t tsc_khz)
{
	*clock = (struct pmu_clock){.khz = tsc_khz, .alarm_wall_ns = NOT_ARMED};
	clock->random = clock_ns(CLOCK_MONOTONIC) << 16 ^ (uintptr_t)clock ^ 1;
}

bool pmu_clock_attach(struct pmu_clock *clock, int signal, GError **error)
{
	clock->has_timer = clock_timer_create(CLOCK_MONOTONIC, signal, 0, &clock->timer);
	if (!clock->has_timer)
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_SYSTEM,
		            "cannot make the timer of the guest's PMU: %s; raise `ulimit -i`", g_strerror(errno));
	return clock->has_timer;
}

void pmu_clock_detach(struct pmu_clock *clock)
{
	if (clock->has_timer)
		timer_delete(clock->timer);
	clock->has_timer = false;
}
