// SPDX-License-Identifier: BSD-2-Clause
/*
 * Breakpoints and the observer of one vCPU, on its thread. KVM's debug registers (KVM_GUESTDBG_USE_HW_BP) take the
 * place of the guest's own while there are breakpoints.
 */
#ifndef VPROF_KVM_VCPU_DEBUG_H
#define VPROF_KVM_VCPU_DEBUG_H

#include "guest/guest_debug.h"
#include "kvm/vcpu/vcpu_step.h"

struct vcpu;

/* The breakpoints of a VM: the same on every vCPU, each of which has a copy. */
struct breakpoints {
	size_t n;
	struct guest_breakpoint *all[GUEST_BREAKPOINTS_MAX];
};

/* The distinct addresses of the processor's; returns how many, at most GUEST_BREAKPOINT_ADDRESSES_MAX. */
size_t breakpoints_addresses(const struct breakpoints *breakpoints, uint64_t to[GUEST_BREAKPOINT_ADDRESSES_MAX]);

/* The observers of a VM, likewise. */
struct observers {
	size_t n;
	struct guest_observer *all[GUEST_OBSERVERS_MAX];
};

/* All zero at first. */
struct vcpu_debug {
	struct breakpoints breakpoints;
	bool stepping; /* over the instruction at `over`, whose breakpoint is not set meanwhile */
	uint64_t over;
	struct observers observers;
	struct guest_gprs gprs; /* at the last exit, if there are observers */
	struct guest_access access;
	struct vcpu_step step;
};

/* From now on these. False, with errno: KVM refused, and nothing has changed. */
bool vcpu_debug_set(struct vcpu *vcpu, const struct breakpoints *breakpoints);

/* Tells KVM again what to stop at, as the members above have it. False, with errno. */
bool vcpu_debug_apply(struct vcpu *vcpu);

/* Calls those who wait at this address, and returns whether there are any. */
bool vcpu_debug_hit(struct vcpu *vcpu, uint64_t pc);

/* After KVM_EXIT_DEBUG. */
void vcpu_debug_exit(struct vcpu *vcpu);

/* Around the handling of an exit, if there are observers. */
void vcpu_observe_exit(struct vcpu *vcpu, bool interrupted);
void vcpu_observe_handled(struct vcpu *vcpu);

/* The general registers at the last exit. */
void vcpu_read_gprs(const struct vcpu *vcpu, struct guest_gprs *gprs);

#endif
