// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads what is counted for one vCPU at KVM's trace points (exit_trace.h), as what has passed since a beginning. Makes
 * no system calls but that of a lock. One thread at a time.
 */
#ifndef VPROF_EXITS_EXIT_CLOCK_H
#define VPROF_EXITS_EXIT_CLOCK_H

#include "exits/bpf/exit_times.h"
#include "guest/guest.h"

struct exit_clock;

/* What is counted of a vCPU: in memory that is written meanwhile, or as `copy` makes it. */
struct exit_source {
	const struct exit_times_vcpu *memory;
	void (*copy)(void *data, unsigned vcpu, struct exit_times_vcpu *to); /* NULL: `memory` */
	void *data;
	unsigned vcpu;
};

/* Begins now. What the source points to must outlive it. */
struct exit_clock *exit_clock_new(const struct exit_source *source);
void exit_clock_free(struct exit_clock *clock);

/* Brings it up to now. */
void exit_clock_update(struct exit_clock *clock);
/* Begins anew at the last update. */
void exit_clock_reset(struct exit_clock *clock);

/*
 * From the beginning to the last update: sets the clocks of out->time that the program knows, and exits and accesses of
 * `out`; with `causes`, also out->exits. The exit that a vCPU is in has its time, and is not counted yet. cpu_ns: the
 * thread's time on a processor, which tells guest from halt while there was no event.
 */
void exit_clock_read(const struct exit_clock *clock, uint64_t cpu_ns, bool causes, struct guest_vcpu_time *out);

#endif
