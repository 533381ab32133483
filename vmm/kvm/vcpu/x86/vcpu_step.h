// SPDX-License-Identifier: BSD-2-Clause
/*
 * Single-steps a vCPU, on its thread (KVM_GUESTDBG_SINGLESTEP): vcpu_arch_step.
 *
 * KVM injects no interrupts meanwhile (KVM_GUESTDBG_BLOCKIRQ): with a timer, runs would differ, and a handler could
 * take longer than the timer's period. A halted vCPU needs an interrupt, so it rests: it runs freely up to a hardware
 * breakpoint at the instruction after HLT.
 */
#ifndef VPROF_KVM_VCPU_X86_VCPU_STEP_H
#define VPROF_KVM_VCPU_X86_VCPU_STEP_H

#include "kvm/vcpu/x86/vcpu_x86.h"

/*
 * Around the handling of an exit (interrupted: KVM_RUN failed; now: the registers with which the guest is entered
 * next), while there is a stepper. False, with errno, when KVM refuses to let it rest.
 */
void vcpu_step_exited(struct vcpu *vcpu, bool interrupted);
bool vcpu_step_handled(struct vcpu *vcpu, const struct guest_regs *now);

#endif
