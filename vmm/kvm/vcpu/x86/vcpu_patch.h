// SPDX-License-Identifier: BSD-2-Clause
/*
 * A vCPU at a patch (patch.h), on its thread. The instruction that the INT3 stands for is executed on its registers if
 * that can be done exactly (patch_execute.h). If not, the vCPU executes it by a single step, with the instruction back
 * in its place and no other vCPU in the guest: another one would execute the instruction unseen.
 */
#ifndef VPROF_KVM_VCPU_X86_VCPU_PATCH_H
#define VPROF_KVM_VCPU_X86_VCPU_PATCH_H

#include "kvm/vcpu/x86/vcpu_x86.h"

/* The host memory of a byte that the guest executes, in the address space of any of its vCPUs; NULL: there is none. */
uint8_t *vcpu_patch_find(struct vcpu_machine *machine, gva_t at);

/* KVM_RUN returned, and regs is where the vCPU is: ends a step. */
void vcpu_patch_returned(struct vcpu *vcpu, int failed);
/* True when the exit is an INT3 of ours, or was one: it has been dealt with. */
bool vcpu_patch_exit(struct vcpu *vcpu);

#endif
