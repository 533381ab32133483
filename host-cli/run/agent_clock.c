// SPDX-License-Identifier: BSD-2-Clause
#include "run/agent_clock.h"

#include "lib/record/clock.h"

static void guest_clock_add(struct guest_clock *clock, uint64_t asked_ns, uint64_t guest_ns, uint64_t answered_ns)
{
	/* The guest may send any number. Differences wrap around, and are only added to the guest's own times. */
	int64_t least_ns = (int64_t)(asked_ns - guest_ns), most_ns = (int64_t)(answered_ns - guest_ns);

	if (clock->known) {
		least_ns = MAX(least_ns, clock->least_ns);
		most_ns = MIN(most_ns, clock->most_ns);
	}
	/* The clocks have drifted apart: earlier bounds are outdated. */
	if (least_ns > most_ns) {
		least_ns = (int64_t)(asked_ns - guest_ns);
		most_ns = (int64_t)(answered_ns - guest_ns);
	}
	*clock = (struct guest_clock){.known = true, .least_ns = least_ns, .most_ns = most_ns};
}

uint64_t guest_clock_to_host(const struct guest_clock *clock, uint64_t guest_ns)
{
	uint64_t width_ns = (uint64_t)clock->most_ns - (uint64_t)clock->least_ns;

	return clock->known ? guest_ns + (uint64_t)clock->least_ns + width_ns / 2 : 0;
}

void agent_clock_ask(struct agent_clock *clock, GByteArray *to_agent)
{
	clock->asking = true;
	clock->asked_ns = clock_ns(CLOCK_MONOTONIC);
	agent_say_ping(to_agent, clock->asked_ns);
}

bool agent_clock_is_due(const struct agent_clock *clock)
{
	return !clock->asking &&
	       clock_ns(CLOCK_MONOTONIC) - clock->asked_ns >= MAX(clock->wait_ns, AGENT_CLOCK_INTERVAL_MIN_NS);
}

bool agent_clock_take(struct agent_clock *clock, const struct vprof_agent_pong *pong)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (!clock->asking || pong->cookie != clock->asked_ns)
		return false;
	clock->asking = false;
	clock->wait_ns = MIN(AGENT_ANSWER_SHARE * (now_ns - clock->asked_ns), AGENT_CLOCK_INTERVAL_MAX_NS);
	guest_clock_add(&clock->clock, pong->cookie, pong->time_ns, now_ns);
	clock->pongs++;
	return true;
}

bool agent_clock_mark(const struct agent_clock *clock, const struct vprof_agent_mark *mark, bool *begins,
                      uint64_t *time_ns)
{
	if ((mark->kind != VPROF_AGENT_MARK_BEGIN && mark->kind != VPROF_AGENT_MARK_END) || !clock->clock.known)
		return false;
	*begins = mark->kind == VPROF_AGENT_MARK_BEGIN;
	*time_ns = guest_clock_to_host(&clock->clock, mark->time_ns);
	return true;
}
