// SPDX-License-Identifier: BSD-2-Clause
/* The program of kvm_view_program.h for hosts of x86-64. */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>
#include <stddef.h>

#include "guest_sample.h"
#include "kvm_view.h"

/* ---- the kernel's ---- */

#define KERNEL __attribute__((preserve_access_index))

enum kvm_irqchip_mode {
	KVM_IRQCHIP_NONE,
};

struct kvm_arch {
	enum kvm_irqchip_mode irqchip_mode;
	unsigned char vm_type; /* from 6.8 on */
	__u32 max_vcpu_ids;    /* from 6.0 on */
} KERNEL;

struct kvm_vcpu_arch {
	__u32 regs_avail;
	unsigned long cr3, cr4;
	__u64 efer;
	bool guest_state_protected;
} KERNEL;

#include "kvm_view_program.h"

#include "kvm_registers.h"

struct kvm_sev_info {
	bool active;
} KERNEL;

struct kvm_svm {
	struct kvm_sev_info sev_info;
} KERNEL;

struct desc_ptr {
	unsigned long address;
} KERNEL;

struct vcpu_pvm {
	struct desc_ptr idt;
} KERNEL;

struct vmcb_seg {
	__u64 base;
} KERNEL;

struct vmcb_save_area {
	struct vmcb_seg idtr;
	__u64 cr3;
} KERNEL;

struct vmcb {
	struct vmcb_save_area save;
} KERNEL;

struct kvm_vmcb_info {
	struct vmcb *ptr;
} KERNEL;

struct vcpu_svm {
	struct kvm_vmcb_info vmcb01; /* the guest's; another one is in use while it runs a guest of its own */
} KERNEL;

/* ---- ours ---- */

#define AVAILABLE_CR3 19     /* number of CR3 in regs_avail: behind rip, PDPTR and CR0 (enum kvm_reg) */
#define CR4_LA57 (1ul << 12) /* SDM Vol. 3A, 2.5 */
#define EFER_LMA (1ul << 10) /* SDM Vol. 3A, 2.2.1 */

/* KVM_X86_SEV_VM to KVM_X86_TDX_VM of uapi asm/kvm.h */
#define VM_TYPE_SEV 2
#define VM_TYPE_SNP 4
#define VM_TYPE_TDX 5

static unsigned int protection(struct kvm_vcpu *vcpu)
{
	struct kvm *kvm = BPF_CORE_READ(vcpu, kvm);
	unsigned int flags = 0, type = 0;

	if (bpf_core_field_exists(vcpu->arch.guest_state_protected) && BPF_CORE_READ(vcpu, arch.guest_state_protected))
		flags |= KVM_VIEW_STATE_PROTECTED;
	if (bpf_core_field_exists(kvm->arch.vm_type))
		type = BPF_CORE_READ(kvm, arch.vm_type);
	if (type >= VM_TYPE_SEV && type <= VM_TYPE_SNP)
		flags |= KVM_VIEW_SEV;
	if (type == VM_TYPE_TDX)
		flags |= KVM_VIEW_TDX;
	if (vendor == GUEST_SAMPLE_SVM && bpf_core_type_exists(struct kvm_sev_info)) {
		struct kvm_svm *svm = (void *)kvm; /* the first member of it */

		if (BPF_CORE_READ(svm, sev_info.active))
			flags |= KVM_VIEW_SEV;
	}
	return flags;
}

static void vm_fill(struct kvm_view_vm *record, struct kvm *kvm)
{
	if (bpf_core_field_exists(kvm->arch.max_vcpu_ids))
		record->ids_max = BPF_CORE_READ(kvm, arch.max_vcpu_ids);
	if (bpf_core_field_exists(kvm->arch.irqchip_mode) && BPF_CORE_READ(kvm, arch.irqchip_mode) != KVM_IRQCHIP_NONE)
		record->flags |= KVM_VIEW_HALTS;
}

static void fill_svm(struct kvm_view_vcpu *record, struct kvm_vcpu *vcpu)
{
	struct vcpu_svm *svm = (void *)vcpu; /* the first member of it */

	if (!bpf_core_type_exists(struct vcpu_svm) || !bpf_core_type_exists(struct vmcb_save_area))
		return;
	struct vmcb *vmcb = BPF_CORE_READ(svm, vmcb01.ptr);

	record->tables[0] = BPF_CORE_READ(vmcb, save.cr3);
	record->vectors = BPF_CORE_READ(vmcb, save.idtr.base);
	record->flags |= KVM_VIEW_HAS_TABLES | KVM_VIEW_HAS_VECTORS;
}

static void fill_pvm(struct kvm_view_vcpu *record, struct kvm_vcpu *vcpu)
{
	struct vcpu_pvm *pvm = (void *)vcpu;

	if (!bpf_core_type_exists(struct vcpu_pvm))
		return;
	record->vectors = BPF_CORE_READ(pvm, idt.address);
	record->flags |= KVM_VIEW_HAS_TABLES | KVM_VIEW_HAS_VECTORS;
}

static void registers_fill(struct kvm_view_vcpu *record, struct kvm_vcpu *vcpu)
{
	record->tables[0] = BPF_CORE_READ(vcpu, arch.cr3);
	if (registers_available(vcpu) >> AVAILABLE_CR3 & 1)
		record->flags |= KVM_VIEW_HAS_TABLES;
	if (BPF_CORE_READ(vcpu, arch.efer) & EFER_LMA)
		record->flags |= KVM_VIEW_LONG_MODE;
	if (BPF_CORE_READ(vcpu, arch.cr4) & CR4_LA57)
		record->flags |= KVM_VIEW_FIVE_LEVELS;
	if (vendor == GUEST_SAMPLE_SVM)
		fill_svm(record, vcpu);
	else if (vendor == GUEST_SAMPLE_PVM)
		fill_pvm(record, vcpu);
}
