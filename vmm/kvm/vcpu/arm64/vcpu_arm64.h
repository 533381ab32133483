// SPDX-License-Identifier: BSD-2-Clause
/* What a vCPU has on arm64. */
#ifndef VPROF_KVM_VCPU_ARM64_VCPU_ARM64_H
#define VPROF_KVM_VCPU_ARM64_VCPU_ARM64_H

#include "kvm/vcpu/vcpu.h"

struct vcpu_arch {
	struct kvm_vcpu_init init; /* the processor, and its features */
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

#endif
