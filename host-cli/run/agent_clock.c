// SPDX-License-Identifier: BSD-2-Clause
#include "run/agent_clock.h"

#include "lib/record/clock.h"

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
