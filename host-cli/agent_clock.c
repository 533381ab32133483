// SPDX-License-Identifier: BSD-2-Clause
#include "agent_clock.h"

#include "lib/record/clock.h"

#define ANSWER_SHARE 20u /* of the time that an answer takes: the wait after the question */

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
	clock->wait_ns = MIN(ANSWER_SHARE * (now_ns - clock->asked_ns), AGENT_CLOCK_INTERVAL_MAX_NS);
	guest_clock_add(&clock->clock, pong->cookie, pong->time_ns, now_ns);
	clock->pongs++;
	return true;
}
