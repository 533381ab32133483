// SPDX-License-Identifier: BSD-2-Clause
/* Which of a vCPU's registers KVM has, before and since Linux 7.2; to be included behind struct kvm_vcpu. */
#ifndef VPROF_ATTACH_BPF_X86_KVM_REGISTERS_H
#define VPROF_ATTACH_BPF_X86_KVM_REGISTERS_H

/* Since 7.2, regs_avail is an array, and RIP not the last of regs but a member of its own. */
struct kvm_vcpu_arch___7_2 {
	unsigned long regs[16];
	unsigned long rip;
	unsigned long regs_avail[1];
} __attribute__((preserve_access_index));

struct kvm_vcpu___7_2 {
	struct kvm_vcpu_arch___7_2 arch;
} __attribute__((preserve_access_index));

/* A bit for each register that is of now, not of an earlier exit (enum kvm_reg). */
static __u64 registers_available(struct kvm_vcpu *vcpu)
{
	struct kvm_vcpu___7_2 *since_7_2 = (void *)vcpu;

	if (bpf_core_field_exists(since_7_2->arch.rip))
		return BPF_CORE_READ(since_7_2, arch.regs_avail[0]);
	return BPF_CORE_READ(vcpu, arch.regs_avail);
}

#endif
