// SPDX-License-Identifier: BSD-2-Clause
/* The clock of the agent in a guest, asked for by PING and told by PONG. */
#ifndef VPROF_CLI_AGENT_CLOCK_H
#define VPROF_CLI_AGENT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/agent/agent_stream.h"

/*
 * The guest's CLOCK_MONOTONIC in terms of ours, by questions and answers as in RFC 5905: the guest read its clock after
 * we asked and before we had the answer. Each exchange narrows the range that the difference must be in.
 */
struct guest_clock {
	bool known;
	int64_t least_ns, most_ns; /* of ours less the guest's */
};

/* What our clock showed when the guest's showed guest_ns; 0 when nothing is known. */
uint64_t guest_clock_to_host(const struct guest_clock *clock, uint64_t guest_ns);

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
