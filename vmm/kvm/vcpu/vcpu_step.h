// SPDX-License-Identifier: BSD-2-Clause
/*
 * A vCPU that executes one instruction after the other, on its thread (KVM_GUESTDBG_SINGLESTEP).
 *
 * KVM does not inject interrupts meanwhile (KVM_GUESTDBG_BLOCKIRQ), so that a timer does not make one run differ from
 * the next, and a handler does not take longer than the timer's period. A vCPU that halts waits for one, though: it
 * rests, which is to run freely up to the instruction behind HLT, where a breakpoint of the processor waits for it.
 */
#ifndef VPROF_KVM_VCPU_STEP_H
#define VPROF_KVM_VCPU_STEP_H

#include <linux/kvm.h>

#include "guest/guest_debug.h"

struct vcpu;

/* Debug registers (SDM vol. 3B, 17.2). */
#define DR6_BS (UINT64_C(1) << 14)
#define DR7_GLOBAL(n) (UINT64_C(2) << 2 * (n))

/* All zero at first. */
struct vcpu_step {
	struct guest_stepper *stepper; /* NULL: the vCPU runs freely */
	struct guest_regs at;          /* where it entered the guest last */
	bool entered;                  /* `at` is that of a step */
	bool halted;                   /* by the last step */
	bool resting;
	uint64_t until; /* resting: where it goes on */
};

/* As guest_debug_ops.step. False, with errno: KVM refused, and nothing has changed. */
bool vcpu_step_set(struct vcpu *vcpu, struct guest_stepper *stepper);

/*
 * Around the handling of an exit (interrupted: KVM_RUN failed; now: the registers with which the guest is entered
 * next), while there is a stepper. False, with errno, when KVM refuses to let it rest.
 */
void vcpu_step_exited(struct vcpu *vcpu, bool interrupted);
bool vcpu_step_handled(struct vcpu *vcpu, const struct guest_regs *now);

/* For vcpu_debug.c: whether the next instruction is to be a step; */
bool vcpu_step_goes_on(const struct vcpu_step *step);
/* the breakpoint behind a rest, if one of the four is free: puts its address behind `taken` others, returns its DR7. */
uint64_t vcpu_step_breakpoint(const struct vcpu_step *step, size_t taken, __u64 addresses[]);
/* whether a debug exit is a step's or the end of a rest. */
bool vcpu_step_took(struct vcpu_step *step, const struct kvm_debug_exit_arch *exit);

#endif
