// SPDX-License-Identifier: BSD-2-Clause
/* The clock of the agent in a guest, asked for by PING and told by PONG. */
#ifndef VPROF_CLI_AGENT_CLOCK_H
#define VPROF_CLI_AGENT_CLOCK_H

#include "lib/agent/agent_stream.h"
#include "run/guest_clock.h"

/* Between questions that keep it right: longer where answers take long, which is the guest's time. */
#define AGENT_CLOCK_INTERVAL_MIN_NS UINT64_C(1000000000)
#define AGENT_CLOCK_INTERVAL_MAX_NS UINT64_C(10000000000)
#define AGENT_ANSWER_SHARE 20u /* of the time that an answer takes: the wait until the next question of its kind */

/* All zero: never asked. */
struct agent_clock {
	struct guest_clock clock;
	unsigned pongs; /* answers */
	bool asking;
	uint64_t asked_ns; /* CLOCK_MONOTONIC */
	uint64_t wait_ns;  /* from the last question to the next one; 0: nothing is known yet */
};

/* Appends a question to what goes to the agent. */
void agent_clock_ask(struct agent_clock *clock, GByteArray *to_agent);
/* Whether none is open and it is time for another. */
bool agent_clock_is_due(const struct agent_clock *clock);
/* Takes an answer; false when it is to no question of ours. */
bool agent_clock_take(struct agent_clock *clock, const struct vprof_agent_pong *pong);
/*
 * Whether a mark begins or ends a phase, and when, by our CLOCK_MONOTONIC. False for another kind, and before the first
 * answer, when nobody knows the time.
 */
bool agent_clock_mark(const struct agent_clock *clock, const struct vprof_agent_mark *mark, bool *begins,
                      uint64_t *time_ns);

#endif
