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

#include "kvm/vcpu/vcpu.h"

/* As guest_debug_ops.step. False, with errno: KVM refused, and nothing has changed. */
bool vcpu_step_set(struct vcpu *vcpu, struct guest_stepper *stepper);

/*
 * Around the handling of an exit (interrupted: KVM_RUN failed; now: the registers with which the guest is entered
 * next), while there is a stepper. False, with errno, when KVM refuses to let it rest.
 */
void vcpu_step_exited(struct vcpu *vcpu, bool interrupted);
bool vcpu_step_handled(struct vcpu *vcpu, const struct guest_regs *now);

#endif
