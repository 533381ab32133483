// SPDX-License-Identifier: BSD-2-Clause
/*
 * Breakpoints and the observer of one vCPU, on its thread. KVM's debug registers (KVM_GUESTDBG_USE_HW_BP) take the
 * place of the guest's own while there are breakpoints.
 */
#ifndef VPROF_KVM_VCPU_X86_VCPU_DEBUG_H
#define VPROF_KVM_VCPU_X86_VCPU_DEBUG_H

#include "kvm/vcpu/x86/vcpu_x86.h"

/* Debug registers (SDM vol. 3B, 17.2). */
#define DR6_BS (UINT64_C(1) << 14)

/* The distinct addresses of the processor's; returns how many, at most GUEST_BREAKPOINT_ADDRESSES_MAX. */
size_t breakpoints_addresses(const struct breakpoints *breakpoints, uint64_t to[GUEST_BREAKPOINT_ADDRESSES_MAX]);

/* From now on these. False, with errno: KVM refused, and nothing has changed. */
bool vcpu_debug_set(struct vcpu *vcpu, const struct breakpoints *breakpoints);

/* Tells KVM again what to stop at, as the members above have it. False, with errno. */
bool vcpu_debug_apply(struct vcpu *vcpu);

/* Calls the breakpoints at this address; returns whether there are any. */
bool vcpu_debug_hit(struct vcpu *vcpu, uint64_t pc);

/* After KVM_EXIT_DEBUG. */
void vcpu_debug_exit(struct vcpu *vcpu);

/* Around the handling of an exit, if there are observers. */
void vcpu_observe_exit(struct vcpu *vcpu, bool interrupted);
void vcpu_observe_handled(struct vcpu *vcpu);

/* The general registers at the last exit. */
void vcpu_read_gprs(const struct vcpu *vcpu, struct guest_gprs *gprs);

#endif
