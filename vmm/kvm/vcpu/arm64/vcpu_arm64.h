// SPDX-License-Identifier: BSD-2-Clause
/* What a vCPU has on arm64. */
#ifndef VPROF_KVM_VCPU_ARM64_VCPU_ARM64_H
#define VPROF_KVM_VCPU_ARM64_VCPU_ARM64_H

#include "kvm/vcpu/vcpu.h"

/* Single steps, of which KVM_EXIT_DEBUG says that one is over. All zero at first. */
struct vcpu_step {
	struct guest_stepper *stepper; /* NULL: the vCPU runs freely */
	struct guest_regs at;          /* before the instruction in hand */
};

struct vcpu_arch {
	struct kvm_vcpu_init init; /* the processor, and its features */
	struct vcpu_step step;
};

/* [I] immutable once launched. */
struct machine_arch {
	size_t breakpoints; /* [I] of the processor, for debugging from outside */
	bool debugs;        /* [I] KVM_CAP_SET_GUEST_DEBUG */
};

/* Sets one of KVM_ARM_VCPU_*, for KVM_ARM_VCPU_INIT. */
static inline void vcpu_set_feature(struct kvm_vcpu_init *init, unsigned feature)
{
	init->features[feature / 32] |= UINT32_C(1) << feature % 32;
}

/* As a sample needs them. */
void vcpu_read_registers(const struct vcpu *vcpu, struct guest_regs *regs);
/* Where the boot processor begins, and its X0. */
bool vcpu_set_start(struct vcpu *vcpu, uint64_t pc, uint64_t x0, GError **error);

/*
 * Whether the vCPU, which is at `pc`, has just entered an exception to return to `before`: an interrupt or a fault has
 * come instead of the instruction there.
 */
bool vcpu_was_diverted(const struct vcpu *vcpu, uint64_t pc, uint64_t before);
/* Gives the guest the exception that `esr` describes, of the instruction at its PC. */
bool vcpu_enter_exception(struct vcpu *vcpu, uint32_t esr, GError **error);

/* debug_arm64.c: after KVM_EXIT_DEBUG. */
void vcpu_debug_exit(struct vcpu *vcpu);
/* After every exit (failed: errno of KVM_RUN or 0), with vcpu->regs read. */
void vcpu_step_exited(struct vcpu *vcpu, int failed);

#endif
