// SPDX-License-Identifier: BSD-2-Clause
/* The clock of the agent in a guest, asked for by PING and told by PONG. */
#ifndef VPROF_CLI_AGENT_CLOCK_H
#define VPROF_CLI_AGENT_CLOCK_H

#include "guest_clock.h"
#include "lib/agent/agent_stream.h"

#define AGENT_CLOCK_INTERVAL_NS UINT64_C(1000000000) /* between questions that keep it right */

/* All zero: never asked. */
struct agent_clock {
	struct guest_clock clock;
	unsigned pongs; /* answers */
	bool asking;
	uint64_t asked_ns; /* CLOCK_MONOTONIC */
};

/* Appends a question to what goes to the agent. */
void agent_clock_ask(struct agent_clock *clock, GByteArray *to_agent);
/* Whether none is open and the last one is AGENT_CLOCK_INTERVAL_NS old. */
bool agent_clock_is_due(const struct agent_clock *clock);
/* Takes an answer; false when it is to no question of ours. */
bool agent_clock_take(struct agent_clock *clock, const struct vprof_agent_pong *pong);

#endif
