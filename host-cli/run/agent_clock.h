// SPDX-License-Identifier: BSD-2-Clause
/* The clock of the agent in a guest, asked for by PING and told by PONG. */
#ifndef VPROF_CLI_RUN_AGENT_CLOCK_H
#define VPROF_CLI_RUN_AGENT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/agent/agent_stream.h"

/*
 * The difference between the host's CLOCK_MONOTONIC and the guest's, by exchanges as in RFC 5905: the guest reads its
 * clock after the question was sent and before the answer arrives. Each exchange narrows the range of the difference.
 */
struct guest_clock {
	bool known;
	int64_t least_ns, most_ns; /* host's clock minus guest's */
};

/* The host's time at the guest's time guest_ns; 0 if nothing is known yet. */
uint64_t guest_clock_to_host(const struct guest_clock *clock, uint64_t guest_ns);

/* The interval of clock queries. It is longer if answers take long, since they cost the guest time. */
#define AGENT_CLOCK_INTERVAL_MIN_NS UINT64_C(1000000000)
#define AGENT_CLOCK_INTERVAL_MAX_NS UINT64_C(10000000000)
#define AGENT_ANSWER_SHARE 20u /* the wait until the next query, as a multiple of the time that the answer took */

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
/* Whether no query is pending and the next one is due. */
bool agent_clock_is_due(const struct agent_clock *clock);
/* Takes an answer; false if it belongs to no pending query. */
bool agent_clock_take(struct agent_clock *clock, const struct vprof_agent_pong *pong);
/*
 * Whether a mark begins or ends a phase, and its time by the host's CLOCK_MONOTONIC. False for other kinds, and before
 * the first answer, when the guest's clock is unknown.
 */
bool agent_clock_mark(const struct agent_clock *clock, const struct vprof_agent_mark *mark, bool *begins,
                      uint64_t *time_ns);

#endif
