// SPDX-License-Identifier: BSD-2-Clause
#include "agent_clock.h"

#include "lib/record/clock.h"

void agent_clock_ask(struct agent_clock *clock, GByteArray *to_agent)
{
	clock->asking = true;
	clock->asked_ns = clock_ns(CLOCK_MONOTONIC);
	agent_say_ping(to_agent, clock->asked_ns);
}

bool agent_clock_is_due(const struct agent_clock *clock)
{
	return !clock->asking && clock_ns(CLOCK_MONOTONIC) - clock->asked_ns >= AGENT_CLOCK_INTERVAL_NS;
}

bool agent_clock_take(struct agent_clock *clock, const struct vprof_agent_pong *pong)
{
	if (!clock->asking || pong->cookie != clock->asked_ns)
		return false;
	clock->asking = false;
	guest_clock_add(&clock->clock, pong->cookie, pong->time_ns, clock_ns(CLOCK_MONOTONIC));
	clock->pongs++;
	return true;
}
