// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a vCPU thread's time went, from clocks that know nothing of each other:
 *
 *   wall = run + vmm              CLOCK_MONOTONIC around KVM_RUN
 *   cpu, runnable                 the host scheduler: CLOCK_THREAD_CPUTIME_ID, and the run delay of /proc/.../schedstat
 *   halt_wait, halt_poll          KVM's statistics (Documentation/virt/kvm/api.rst, KVM_GET_STATS_FD)
 *   offline                       inside KVM_RUN while the vCPU waited for its INIT or SIPI
 *   guest, kvm, vmm_traced        KVM's trace points, where they can be read; runnable, halt_* and offline come from
 *                                 these and the scheduler's then, so that each ns is in one of the seven
 *
 * From them the parts, which add up to the wall time; the rest that none of the clocks accounts for is the residual.
 */
#ifndef VPROF_PROFILE_VCPU_TIME_H
#define VPROF_PROFILE_VCPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* Raw, in ns since the vCPU's start or the last reset. A clock that the host does not have stands at 0. */
#define VCPU_TIMES(X)                                                                              \
	X(wall, "since the guest's start or the last reset; until the vCPU's end")                 \
	X(run, "inside KVM_RUN")                                                                   \
	X(vmm, "outside KVM_RUN: the exits that the VMM handles, and its run loop")                \
	X(cpu, "the vCPU's thread was on a host CPU")                                              \
	X(runnable, "the thread waited for a host CPU")                                            \
	X(halt_wait, "KVM slept because the vCPU was halted, until the thread was on a CPU again") \
	X(halt_poll, "KVM polled because the vCPU was halted")                                     \
	X(offline, "inside KVM_RUN, waiting for the INIT or SIPI that starts the vCPU")            \
	X(guest, "in the guest, by KVM's trace points; with kvm and vmm_traced 0 without them")    \
	X(kvm, "KVM handled exits by itself, by the same")                                         \
	X(vmm_traced, "vmm and the system call KVM_RUN itself, by the same")

struct vcpu_time {
#define X(name, help) uint64_t name##_ns;
	VCPU_TIMES(X)
#undef X
};

void vcpu_time_add(struct vcpu_time *sum, const struct vcpu_time *time);
/* What passed between two readings; from 0 where a clock was reset between them. */
struct vcpu_time vcpu_time_between(const struct vcpu_time *from, const struct vcpu_time *to);

/*
 * How often a look at the vCPU, VCPU_MODE_LOOKS_HZ times a second and at random, found the guest running in which mode.
 * Looks that found the VMM at work or the vCPU halted are not among them.
 */
#define VCPU_MODE_LOOKS_HZ 97u
struct vcpu_modes {
	uint64_t kernel, user;
};

/* guest + kvm + vmm + halted + offline + runnable + residual = wall; the guest's three parts sum to that. */
struct vcpu_time_parts {
	uint64_t wall_ns;
	uint64_t guest_ns; /* guest code; without trace points, and the exits that KVM handles by itself */
	/* Of it, by the share of the looks that found the guest there; all unknown when none did. */
	uint64_t guest_kernel_ns, guest_user_ns, guest_unknown_ns;
	uint64_t kvm_ns;      /* in KVM for an exit; without trace points 0 */
	uint64_t vmm_ns;      /* in the VMM, waits for a host CPU and for locks included: it is wall time */
	uint64_t halted_ns;   /* until the wake-up */
	uint64_t polling_ns;  /* of it: KVM was awake */
	uint64_t offline_ns;  /* not started yet */
	uint64_t runnable_ns; /* not scheduled: waiting for a host CPU, but not in the VMM */
	int64_t residual_ns; /* asleep inside KVM_RUN for another reason (memory of the guest, a lock); or clocks differ
	                      */
};

/* Whether KVM's trace points were read. */
bool vcpu_time_is_traced(const struct vcpu_time *time);

struct vcpu_time_parts vcpu_time_split(const struct vcpu_time *time, const struct vcpu_modes *modes);
/* Those of several vCPUs: each one's guest time is told apart by its own looks. */
void vcpu_time_parts_add(struct vcpu_time_parts *sum, const struct vcpu_time_parts *parts);

#endif
