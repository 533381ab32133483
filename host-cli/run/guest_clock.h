// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guest's CLOCK_MONOTONIC in terms of ours, by questions and answers as in RFC 5905: the guest read its clock after
 * we asked and before we had the answer. Each exchange narrows the range that the difference must be in.
 */
#ifndef VPROF_CLI_GUEST_CLOCK_H
#define VPROF_CLI_GUEST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct guest_clock {
	bool known;
	int64_t least_ns, most_ns; /* of ours less the guest's */
};

void guest_clock_add(struct guest_clock *clock, uint64_t asked_ns, uint64_t guest_ns, uint64_t answered_ns);
/* What our clock showed when the guest's showed guest_ns; 0 when nothing is known. */
uint64_t guest_clock_to_host(const struct guest_clock *clock, uint64_t guest_ns);

#endif
