// SPDX-License-Identifier: BSD-2-Clause
/*
 * The clocks of one vCPU thread. Everything is the thread's own until it has left, when the last reading stays: other
 * threads that want one ask it (vcpu_run_on).
 */
#ifndef VPROF_KVM_VCPU_VCPU_TIME_H
#define VPROF_KVM_VCPU_VCPU_TIME_H

#include "exits/exit_clock.h"
#include "kvm/vcpu/exit_account.h"
#include "kvm/vcpu/mode_clock.h"

/* What the host and KVM say, since the thread or the vCPU began. */
struct vcpu_time_totals {
	uint64_t cpu_ns, runnable_ns;
	size_t n_counters;
	struct guest_counter counters[GUEST_COUNTERS_MAX];
};

struct vcpu_time_clocks {
	int statistics_fd, schedstat_fd;    /* -1: the host has none */
	bool begun;                         /* by vcpu_time_begin */
	bool online;                        /* has been started: it runs guest code */
	bool told;                          /* KVM_RUN has returned for that */
	struct exit_account account;        /* since the beginning or the last reset */
	struct vcpu_time_totals base, last; /* then, and at the last reading */
	struct mode_clock mode_clock;
	struct exit_clock *exits; /* KVM's trace points; NULL: not read, because: */
	const char *untraced;
};

void vcpu_time_init(struct vcpu_time_clocks *clocks, int vcpu_fd, bool online);
void vcpu_time_deinit(struct vcpu_time_clocks *clocks);

/* Before vcpu_time_begin: reads KVM's trace points too. Takes the clock over. */
void vcpu_time_trace(struct vcpu_time_clocks *clocks, struct exit_clock *exits);

/* On the vCPU's thread, where `signal` interrupts KVM_RUN: it has been created, it is about to enter the guest. */
void vcpu_time_attach(struct vcpu_time_clocks *clocks, int signal);
void vcpu_time_begin(struct vcpu_time_clocks *clocks);
/* On the vCPU's thread: KVM_RUN returned, with EINTR (`interrupted`) or EAGAIN (`startup`). */
void vcpu_time_returned(struct vcpu_time_clocks *clocks, int vcpu_fd, bool interrupted, bool startup);
/* On the vCPU's thread, after vcpu_time_returned: the guest's registers. */
void vcpu_time_look(struct vcpu_time_clocks *clocks, int vcpu_fd, const struct guest_regs *regs);
/* On the vCPU's thread: the exit is handled; the run loop has done something else. */
void vcpu_time_handled(struct vcpu_time_clocks *clocks, uint64_t ip);
void vcpu_time_attended(struct vcpu_time_clocks *clocks);
/* On the vCPU's thread: brings everything up to now. */
void vcpu_time_update(struct vcpu_time_clocks *clocks);
/* The same, as its last act. */
void vcpu_time_finish(struct vcpu_time_clocks *clocks);

/* The last update. On the vCPU's thread, or after its end. */
void vcpu_time_read(const struct vcpu_time_clocks *clocks, struct guest_vcpu_time *out);
/* Counts from the last update on. */
void vcpu_time_reset(struct vcpu_time_clocks *clocks);

#endif
