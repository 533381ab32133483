// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program of kvm_view_program.h for hosts of arm64. The kernel's own page tables and its vectors stay where they
 * are; the tables of user space may be those of another process (vcpu_registers.h).
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>
#include <stddef.h>

#include "kvm_view.h"
#include "vcpu_registers.h"

struct kvm_arch {
	char nothing;
};

#include "kvm_view_program.h"

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
	record->tables[0] = SYSTEM_REGISTER(vcpu, TTBR0_EL1);
	record->tables[1] = SYSTEM_REGISTER(vcpu, TTBR1_EL1);
	record->tables[2] = SYSTEM_REGISTER(vcpu, TCR_EL1);
	record->vectors = SYSTEM_REGISTER(vcpu, VBAR_EL1);
	if (SYSTEM_REGISTER(vcpu, SCTLR_EL1) & SCTLR_MMU)
		record->flags |= KVM_VIEW_MMU | KVM_VIEW_HAS_TABLES;
	record->flags |= KVM_VIEW_HAS_VECTORS;
}
