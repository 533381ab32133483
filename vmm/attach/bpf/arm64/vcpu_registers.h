// SPDX-License-Identifier: BSD-2-Clause
/*
 * A vCPU's registers in KVM's structs. Those that every exit saves are of now. While a vCPU is on a processor, its
 * system registers are there, and what memory has is that of the last time that it was not (kvm_vcpu_put_sysregs_vhe).
 * What the guest's kernel sets once is right all the same.
 */
#ifndef VPROF_ATTACH_BPF_ARM64_VCPU_REGISTERS_H
#define VPROF_ATTACH_BPF_ARM64_VCPU_REGISTERS_H

#include <asm/ptrace.h>

#define KERNEL __attribute__((preserve_access_index))

/* Their numbers in sys_regs are those of the kernel that runs. */
enum vcpu_sysreg { SCTLR_EL1, TTBR0_EL1, TTBR1_EL1, TCR_EL1, VBAR_EL1, TPIDR_EL1 };

struct kvm_cpu_context {
	struct user_pt_regs regs;
	__u64 sys_regs[1];
} KERNEL;

struct kvm_vcpu_arch {
	struct kvm_cpu_context ctxt;
} KERNEL;

#define SCTLR_MMU 1ull /* SCTLR_EL1.M */
#define SYSTEM_REGISTER(vcpu, name) \
	system_register(&(vcpu)->arch.ctxt.sys_regs, bpf_core_enum_value(enum vcpu_sysreg, name))

static __u64 system_register(const void *registers, __u64 number)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), registers + number * sizeof(value));
	return value;
}

#endif
