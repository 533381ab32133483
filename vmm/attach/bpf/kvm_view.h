// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the program of kvm_view_program.h writes for kvm_view.c: records of four kinds, one after the other. Both are
 * built together, and run on one machine. Includes nothing, for BPF has headers of its own.
 */
#ifndef VPROF_ATTACH_BPF_KVM_VIEW_H
#define VPROF_ATTACH_BPF_KVM_VIEW_H

#define KVM_VIEW_SLOTS_MAX 512
#define KVM_VIEW_VMS_MAX 16 /* in one process */

enum kvm_view_kind { KVM_VIEW_VCPU = 1, KVM_VIEW_SLOT, KVM_VIEW_VM, KVM_VIEW_STATISTICS };

/* The first member of every record. */
struct kvm_view_header {
	unsigned int kind;     /* enum kvm_view_kind */
	unsigned int bytes;    /* of the record */
	unsigned long long vm; /* tells machines apart; nothing else */
};

/* kvm_view_vcpu.flags */
#define KVM_VIEW_IN_KVM 1u     /* a system call holds the vCPU: as a rule KVM_RUN */
#define KVM_VIEW_HAS_TABLES 2u /* they are those of the last exit or newer; without, they may be older, or 0 */
#define KVM_VIEW_HAS_VECTORS 4u
#define KVM_VIEW_LONG_MODE 8u    /* x86-64: EFER.LMA */
#define KVM_VIEW_FIVE_LEVELS 16u /* x86-64: CR4.LA57 */
#define KVM_VIEW_MMU 32u         /* arm64: SCTLR_EL1.M */

/* A vCPU, once for each descriptor of its file. */
struct kvm_view_vcpu {
	struct kvm_view_header header;
	unsigned int id;     /* KVM's: on x86-64 the APIC id */
	unsigned int thread; /* that called KVM_RUN last, as the reader's PID namespace has it; 0: none did */
	unsigned int flags;
	unsigned int reserved;
	unsigned long long tables[3]; /* x86-64: CR3; arm64: TTBR0_EL1, TTBR1_EL1 and TCR_EL1 */
	unsigned long long vectors;   /* x86-64: of the IDT; arm64: VBAR_EL1 */
};

/* A range of guest memory, once for each machine. */
struct kvm_view_slot {
	struct kvm_view_header header;
	unsigned long long gpa, bytes, hva;
	unsigned int flags; /* kvm_userspace_memory_region.flags */
	unsigned int reserved;
};

/* kvm_view_vm.flags */
#define KVM_VIEW_SLOTS_CHANGED 1u /* while they were read: read again */
#define KVM_VIEW_SLOTS_MORE 2u    /* than KVM_VIEW_SLOTS_MAX */
#define KVM_VIEW_SEV 4u           /* the guest's memory is encrypted; by SEV, SEV-ES or SEV-SNP */
#define KVM_VIEW_TDX 8u
#define KVM_VIEW_STATE_PROTECTED 16u /* its registers are */
#define KVM_VIEW_HALTS 32u           /* a halted vCPU waits in KVM, which has its interrupt controller */

/* A machine, behind its slots. */
struct kvm_view_vm {
	struct kvm_view_header header;
	unsigned int slots; /* how many were written before */
	unsigned int flags;
	unsigned int ids_max; /* ids of vCPUs are below, as the VMM has told KVM, or by KVM's own limit; 0: not known */
	unsigned int reserved;
};

#define KVM_VIEW_STATISTICS_BYTES_MAX 2048

/* A vCPU's statistics, behind its record, if they were asked for. */
struct kvm_view_statistics {
	struct kvm_view_header header; /* bytes: with as much of `raw` as the kernel has */
	unsigned int id;
	unsigned int reserved;
	unsigned char raw[KVM_VIEW_STATISTICS_BYTES_MAX]; /* struct kvm_vcpu_stat of the kernel that runs */
};

#endif
