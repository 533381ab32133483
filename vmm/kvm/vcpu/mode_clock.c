// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/mode_clock.h"

#include "lib/record/clock.h"
#include "lib/record/xorshift.h"

#define NS_PER_S UINT64_C(1000000000)
/* Between two looks: uniform in this range, so that they do not run in step with a timer of the guest's. */
#define LOOK_NS_MEAN (NS_PER_S / VCPU_MODE_LOOKS_HZ)
#define LOOK_NS_MIN (LOOK_NS_MEAN * 3 / 4)
#define LOOK_NS_SPREAD (LOOK_NS_MEAN / 2)
#define NEVER UINT64_MAX

void mode_clock_attach(struct mode_clock *clock, int signal)
{
	*clock = (struct mode_clock){.due_ns = NEVER, .cpu_due_ns = NEVER, .random = (uintptr_t)clock | 1};
	clock->has_timer = clock_timer_create(CLOCK_MONOTONIC, signal, 0, &clock->timer);
	clock->has_cpu_timer = clock_timer_create(CLOCK_THREAD_CPUTIME_ID, signal, 0, &clock->cpu_timer);
}

void mode_clock_detach(struct mode_clock *clock)
{
	if (clock->has_timer)
		timer_delete(clock->timer);
	if (clock->has_cpu_timer)
		timer_delete(clock->cpu_timer);
	clock->has_timer = clock->has_cpu_timer = false;
	clock->due_ns = clock->cpu_due_ns = NEVER;
}

/* `now_ns` is of the clock of the timer. Returns the time at which it fires. */
static uint64_t set_timer(struct mode_clock *clock, timer_t timer, uint64_t now_ns)
{
	uint64_t due_ns = now_ns + LOOK_NS_MIN + xorshift_next(&clock->random) % LOOK_NS_SPREAD;
	const struct itimerspec at = {.it_value = {(time_t)(due_ns / NS_PER_S), (long)(due_ns % NS_PER_S)}};

	timer_settime(timer, TIMER_ABSTIME, &at, NULL);
	return due_ns;
}

/* Each look sets the timer again: only the timer that is due next runs. */
static void arm(struct mode_clock *clock, uint64_t now_ns, bool halted)
{
	clock->due_ns = clock->cpu_due_ns = NEVER;
	if (halted && clock->has_cpu_timer)
		clock->cpu_due_ns = set_timer(clock, clock->cpu_timer, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	else if (clock->has_timer)
		clock->due_ns = set_timer(clock, clock->timer, now_ns);
}

static void stir(struct mode_clock *clock, uint64_t now_ns)
{
	clock->random ^= now_ns << 16;
	if (clock->random == 0)
		clock->random = 1;
}

void mode_clock_begin(struct mode_clock *clock, uint64_t now_ns)
{
	stir(clock, now_ns);
	arm(clock, now_ns, false);
}

void mode_clock_await(struct mode_clock *clock)
{
	stir(clock, clock_ns(CLOCK_MONOTONIC));
	if (clock->has_cpu_timer)
		arm(clock, 0, true);
}

bool mode_clock_due(const struct mode_clock *clock, uint64_t now_ns)
{
	return now_ns >= clock->due_ns ||
	       (clock->cpu_due_ns != NEVER && clock_ns(CLOCK_THREAD_CPUTIME_ID) >= clock->cpu_due_ns);
}

void mode_clock_look(struct mode_clock *clock, uint64_t now_ns, enum guest_mode found)
{
	clock->modes.kernel += found == GUEST_MODE_KERNEL;
	clock->modes.user += found == GUEST_MODE_USER;
	arm(clock, now_ns, found == GUEST_MODE_HALTED);
}
