// SPDX-License-Identifier: BSD-2-Clause
/* How often a guest or its agent can make a program print a message: what is more is counted, and told as a number. */
#ifndef VPROF_PROCESS_MESSAGE_RATE_H
#define VPROF_PROCESS_MESSAGE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_RATE_MESSAGES 10u
#define MESSAGE_RATE_US INT64_C(10000000)

/* All zero at first. One thread. */
struct message_rate {
	int64_t since_us; /* when the first message of those below came */
	unsigned said;
	uint64_t left_out; /* not told yet */
};

/*
 * Whether one more message may be printed: MESSAGE_RATE_MESSAGES in MESSAGE_RATE_US. `now_us`: of a clock that does not
 * go back. *left_out: print "N messages left out" in front of it, unless it is 0.
 */
bool message_rate_take(struct message_rate *rate, int64_t now_us, uint64_t *left_out);

/* When no more will come: how many were left out since that was told. */
uint64_t message_rate_end(struct message_rate *rate);

#endif
