// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the program of guest_sample_program.h hands to route_bpf.c: the raw data of a sample in a perf ring. Both are
 * built together, and run on one machine. Includes nothing of others, for BPF has headers of its own.
 */
#ifndef VPROF_ATTACH_BPF_GUEST_SAMPLE_H
#define VPROF_ATTACH_BPF_GUEST_SAMPLE_H

#include "guest_sample_machine.h" /* of x86/ or arm64/: struct guest_sample */

#define GUEST_SAMPLE_VCPUS_MAX 64u /* as GUEST_VCPUS_MAX */

/* The machine-specific part of KVM, which has what struct kvm_vcpu has not. */
enum guest_sample_vendor { GUEST_SAMPLE_VMX, GUEST_SAMPLE_SVM, GUEST_SAMPLE_PVM, GUEST_SAMPLE_ARM64 };

/* What is copied of the guest's memory, for call chains. */
enum guest_sample_memory {
	GUEST_SAMPLE_NO_MEMORY,
	GUEST_SAMPLE_FRAMES, /* what the frame pointers lead to */
	GUEST_SAMPLE_STACK,  /* of the kernel the stack from its pointer on, then user space's frames; not on arm64 */
};

/* A processor of the guest's, as its Linux knows it. */
struct guest_sample_cpu {
	unsigned long long area; /* GS base in its kernel; 0: none */
	unsigned long long apic_id;
};

struct guest_sample_settings {
	unsigned int vendor;     /* enum guest_sample_vendor */
	unsigned int memory;     /* enum guest_sample_memory */
	unsigned int depth;      /* frames of a chain, 1..GUEST_SAMPLE_FRAMES_MAX */
	unsigned int user;       /* 1: chains go on in user space */
	unsigned int user_stack; /* 1: by unwind tables, which need the top of its stack */
	/* Per-CPU variables of the guest's Linux, relative to its GS base; 0: not known, or not wanted. */
	unsigned long long current_task, interrupt_stack;
	/*
	 * 1: KVM does not have all registers (VMX); page tables, the per-CPU area and stacks are taken from what
	 * follows.
	 */
	unsigned int by_memory;
	unsigned int task_stack, task_mm, mm_pgd; /* offsets in task_struct and mm_struct */
	unsigned long long kernel_tables;         /* physical address of the kernel's own page tables */
	unsigned long long direct_map;            /* where the kernel has physical address 0 */
	unsigned long long interrupt_in_use;      /* a per-CPU byte, as the variables above */
	unsigned long long entry_stack;           /* per-CPU: the stack pointer of entries from user space */
	unsigned int page_shift;                  /* of the host's pages, in which memory slots are counted */
	unsigned int entry_record;                /* arm64: where struct pt_regs has its frame record; 0: not known */
	unsigned int interrupt_stack_behind;      /* as in struct os_places */
	unsigned int stack_padding;
	struct guest_sample_cpu cpus[GUEST_SAMPLE_VCPUS_MAX];
};

#define GUEST_SAMPLE_FRAMES_MAX 127u /* as UNWIND_DEPTH_MAX */
/* Of each of a kernel's stacks: two pages and what is before them. Linux' stacks have four, and rarely use one. */
#define GUEST_SAMPLE_STACK_PAGES 3
/* Of user space's, from its stack pointer on: four pages and what is before them. */
#define GUEST_SAMPLE_USER_PAGES 5
#define GUEST_SAMPLE_MEMORY_BYTES_MAX 49152u /* a record has 64 KiB at most */
/* By memory: of each stack, this much before its end, in which the stack pointer is searched. */
#define GUEST_SAMPLE_SEARCHED_PAGES 2

/* What the program is told by its attachment: which counter of which vCPU's thread overflowed. */
#define GUEST_SAMPLE_COOKIE(vcpu, event) ((unsigned long long)(event) << 32 | (vcpu))
#define GUEST_SAMPLE_COOKIE_VCPU(cookie) ((unsigned int)(cookie))
#define GUEST_SAMPLE_COOKIE_EVENT(cookie) ((unsigned int)((cookie) >> 32))

/*
 * guest_sample.flags, with those of guest_sample_machine.h. KVM reads some registers of the processor's only when it
 * needs them: those may be unknown.
 */
#define GUEST_SAMPLE_IN_KVM 1u         /* the thread is in KVM_RUN; without, all below is 0 */
#define GUEST_SAMPLE_EMULATED 2u       /* the vCPU is in kernel mode, and this host emulates that */
#define GUEST_SAMPLE_KERNEL_TASK 1024u /* by memory: the current task has no user space */
#define GUEST_SAMPLE_USER_STACK 2048u  /* the top of user space's stack is there, whose stack pointer is known */
#define GUEST_SAMPLE_NESTED 512u       /* the vCPU runs a guest of its own: only the page tables are the guest's */

/* A piece of guest memory as it was: guest virtual address, and how many bytes follow. */
struct guest_sample_span {
	unsigned long long gva;
	unsigned long long bytes;
};

#endif
