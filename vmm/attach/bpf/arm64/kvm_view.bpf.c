// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program of kvm_view_program.h for hosts of arm64. While a vCPU is on a processor, its system registers are there,
 * and what memory has is that of the last time that it was not (kvm_vcpu_put_sysregs_vhe). The kernel's own page tables
 * and its vectors stay where they are; the tables of user space may be those of another process.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>
#include <stddef.h>

#include "kvm_view.h"

/* ---- the kernel's ---- */

#define KERNEL __attribute__((preserve_access_index))

/* Their numbers in sys_regs are those of the kernel that runs. */
enum vcpu_sysreg { SCTLR_EL1, TTBR0_EL1, TTBR1_EL1, TCR_EL1, VBAR_EL1 };

struct kvm_cpu_context {
	__u64 sys_regs[1];
} KERNEL;

struct kvm_arch {
	char nothing;
};

struct kvm_vcpu_arch {
	struct kvm_cpu_context ctxt;
} KERNEL;

#include "kvm_view_program.h"

/* ---- ours ---- */

#define SCTLR_MMU 1ull /* SCTLR_EL1.M */
#define SYSTEM_REGISTER(vcpu, name) system_register(vcpu, bpf_core_enum_value(enum vcpu_sysreg, name))

static __u64 system_register(struct kvm_vcpu *vcpu, __u64 number)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)&vcpu->arch.ctxt.sys_regs + number * sizeof(value));
	return value;
}

/* Guests of pKVM have memory that the host cannot read; its KVM is another one. */
static unsigned int protection(struct kvm_vcpu *vcpu __attribute__((unused)))
{
	return 0;
}

/* WFI waits in KVM, whatever the interrupt controller is (kvm_handle_wfx). */
static void vm_fill(struct kvm_view_vm *record, struct kvm *kvm __attribute__((unused)))
{
	record->flags |= KVM_VIEW_HALTS;
}

static void registers_fill(struct kvm_view_vcpu *record, struct kvm_vcpu *vcpu)
{
	record->ttbr0 = SYSTEM_REGISTER(vcpu, TTBR0_EL1);
	record->ttbr1 = SYSTEM_REGISTER(vcpu, TTBR1_EL1);
	record->tcr = SYSTEM_REGISTER(vcpu, TCR_EL1);
	record->vectors = SYSTEM_REGISTER(vcpu, VBAR_EL1);
	if (SYSTEM_REGISTER(vcpu, SCTLR_EL1) & SCTLR_MMU)
		record->flags |= KVM_VIEW_MMU;
}
