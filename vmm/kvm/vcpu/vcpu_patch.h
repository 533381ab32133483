// SPDX-License-Identifier: BSD-2-Clause
/*
 * A vCPU at a patch (patch.h), on its thread. The instruction that the trap stands for is executed on its registers if
 * that can be done exactly (vcpu_arch_execute). If not, the vCPU executes it by a single step, with the instruction
 * back in its place and no other vCPU in the guest: another one would execute the instruction unseen.
 */
#ifndef VPROF_KVM_VCPU_VCPU_PATCH_H
#define VPROF_KVM_VCPU_VCPU_PATCH_H

#include "guest/guest.h"

struct vcpu;
struct vcpu_machine;

/* All zero at first. */
struct vcpu_patch {
	bool stepping;        /* over the instruction at `over`; the vCPU is alone */
	uint64_t over;        /* its address */
	const uint8_t *place; /* where the trap was */
};

/*
 * On its thread: no other vCPU is in the guest from the one on until the other. False: it is another's turn, for which
 * this one has to wait outside.
 */
bool vcpu_alone_begin(struct vcpu *vcpu);
void vcpu_alone_end(struct vcpu *vcpu);

/* The host memory of an instruction, in the address space of any vCPU of the guest; NULL: there is none. */
uint8_t *vcpu_patch_find(struct vcpu_machine *machine, gva_t at);

/* KVM_RUN returned (failed: its errno or 0), and vcpu->regs is where the vCPU is: ends a step. */
void vcpu_patch_returned(struct vcpu *vcpu, int failed);
/* True when the exit is a trap of ours, or was one: it has been dealt with. */
bool vcpu_patch_exit(struct vcpu *vcpu);

#endif
