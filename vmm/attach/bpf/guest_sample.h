// SPDX-License-Identifier: BSD-2-Clause
/*
 * What guest_sample.bpf.c hands to route_bpf.c: the raw data of a sample in a perf ring. Both are built together, and
 * run on one machine. Includes nothing, for BPF has headers of its own.
 */
#ifndef VPROF_ATTACH_BPF_GUEST_SAMPLE_H
#define VPROF_ATTACH_BPF_GUEST_SAMPLE_H

#define GUEST_SAMPLE_VCPUS_MAX 64u /* as GUEST_VCPUS_MAX */

/* The machine-specific part of KVM, which has what struct kvm_vcpu has not. */
enum guest_sample_vendor { GUEST_SAMPLE_VMX, GUEST_SAMPLE_SVM, GUEST_SAMPLE_PVM };

/* What is copied of the guest's memory, for call chains. */
enum guest_sample_memory {
	GUEST_SAMPLE_NO_MEMORY,
	GUEST_SAMPLE_FRAMES, /* what the frame pointers lead to */
	GUEST_SAMPLE_STACK,  /* of the kernel the stack from rsp on, then user space's frames */
};

struct guest_sample_settings {
	unsigned int vendor; /* enum guest_sample_vendor */
	unsigned int memory; /* enum guest_sample_memory */
	unsigned int depth;  /* frames of a chain, 1..GUEST_SAMPLE_FRAMES_MAX */
	unsigned int user;   /* 1: chains go on in user space */
	/* Per-CPU variables of the guest's Linux, relative to its GS base; 0: not known, or not wanted. */
	unsigned long long current_task, interrupt_stack;
};

#define GUEST_SAMPLE_FRAMES_MAX 127u /* as UNWIND_DEPTH_MAX */
/* Of each of a kernel's stacks: two pages and what is before them. Linux' stacks have four, and rarely use one. */
#define GUEST_SAMPLE_STACK_PAGES 3
#define GUEST_SAMPLE_MEMORY_BYTES_MAX 16384u

/* What the program is told by its attachment: which counter of which vCPU's thread overflowed. */
#define GUEST_SAMPLE_COOKIE(vcpu, event) ((unsigned long long)(event) << 32 | (vcpu))
#define GUEST_SAMPLE_COOKIE_VCPU(cookie) ((unsigned int)(cookie))
#define GUEST_SAMPLE_COOKIE_EVENT(cookie) ((unsigned int)((cookie) >> 32))

/* guest_sample.flags. KVM reads some registers of the processor's only when it needs them: those may be unknown. */
#define GUEST_SAMPLE_IN_KVM 1u       /* the thread is in KVM_RUN; without, all below is 0 */
#define GUEST_SAMPLE_EMULATED 2u     /* the vCPU is in kernel mode, and this host emulates that */
#define GUEST_SAMPLE_HAS_RIP 4u      /* regs[GUEST_SAMPLE_RIP] is of now, not of an earlier exit */
#define GUEST_SAMPLE_HAS_RSP 8u      /* so is rsp */
#define GUEST_SAMPLE_CR3 16u         /* so is cr3 */
#define GUEST_SAMPLE_HAS_GS_BASE 32u /* gs_base is known */
#define GUEST_SAMPLE_HAS_CPL 64u     /* cpl is known */
#define GUEST_SAMPLE_LA57 128u       /* CR4.LA57: five levels of page tables */

/* The numbers that instructions have for them, rip behind: enum kvm_reg (arch/x86/include/asm/kvm_host.h). */
enum guest_sample_reg {
	GUEST_SAMPLE_RAX = 0,
	GUEST_SAMPLE_RDX = 2,
	GUEST_SAMPLE_RSP = 4,
	GUEST_SAMPLE_RBP = 5,
	GUEST_SAMPLE_RDI = 7,
	GUEST_SAMPLE_R10 = 10,
	GUEST_SAMPLE_R13 = 13,
	GUEST_SAMPLE_RIP = 16,
	GUEST_SAMPLE_REGS = 17,
};

struct guest_sample {
	unsigned long long period;
	unsigned int event; /* index into the session's events */
	unsigned int flags;
	unsigned int cpl;
	unsigned int memory_bytes; /* behind this struct: a guest_sample_span and its bytes, again and again */
	unsigned long long regs[GUEST_SAMPLE_REGS];
	unsigned long long cr3, gs_base;
	unsigned long long task; /* the guest's current task_struct; 0: not known */
};

/* A piece of guest memory as it was: guest virtual address, and how many bytes follow. */
struct guest_sample_span {
	unsigned long long gva;
	unsigned long long bytes;
};

#endif
