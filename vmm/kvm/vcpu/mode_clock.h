// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples the mode in which a vCPU runs its guest, because no clock of the host separates user and kernel time of a
 * guest. A timer interrupts KVM_RUN at times that do not depend on the guest; a look that finds the VMM or a halt is
 * not counted. After a look that finds the vCPU halted, the next one is timed by the CPU time of its thread, at a tick
 * of the host. The vCPU's thread only.
 */
#ifndef VPROF_KVM_VCPU_MODE_CLOCK_H
#define VPROF_KVM_VCPU_MODE_CLOCK_H

#include <stdbool.h>
#include <time.h>

#include "lib/profile/vcpu_time.h"

enum guest_mode { GUEST_MODE_KERNEL, GUEST_MODE_USER, GUEST_MODE_HALTED, GUEST_MODE_NONE };

struct mode_clock {
	timer_t timer, cpu_timer;
	bool has_timer, has_cpu_timer;
	uint64_t random;     /* xorshift64 state, never 0 */
	uint64_t due_ns;     /* CLOCK_MONOTONIC; UINT64_MAX: never */
	uint64_t cpu_due_ns; /* CLOCK_THREAD_CPUTIME_ID; UINT64_MAX: never. One of the two at most */
	struct vcpu_modes modes;
};

/* `signal` interrupts KVM_RUN on this thread. Without a free timer on the host, there are no looks. */
void mode_clock_attach(struct mode_clock *clock, int signal);
void mode_clock_detach(struct mode_clock *clock);

/* May be called again. The next look comes some time after now_ns (CLOCK_MONOTONIC, as everywhere here). */
void mode_clock_begin(struct mode_clock *clock, uint64_t now_ns);
/* In its place for a vCPU that waits to be started: the next look comes once its thread has run for some time. */
void mode_clock_await(struct mode_clock *clock);
bool mode_clock_due(const struct mode_clock *clock, uint64_t now_ns);
/* The look that was due has found this mode; sets the time of the next one. */
void mode_clock_look(struct mode_clock *clock, uint64_t now_ns, enum guest_mode found);

#endif
