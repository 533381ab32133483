// SPDX-License-Identifier: BSD-2-Clause
/* A sample of a guest of x86-64: for guest_sample.h. */
#ifndef VPROF_ATTACH_BPF_X86_GUEST_SAMPLE_MACHINE_H
#define VPROF_ATTACH_BPF_X86_GUEST_SAMPLE_MACHINE_H

/* The numbers that instructions have for them, rip behind: enum kvm_reg (arch/x86/include/asm/kvm_host.h). */
enum guest_sample_reg {
	GUEST_SAMPLE_RAX,
	GUEST_SAMPLE_RCX,
	GUEST_SAMPLE_RDX,
	GUEST_SAMPLE_RBX,
	GUEST_SAMPLE_RSP,
	GUEST_SAMPLE_RBP,
	GUEST_SAMPLE_RSI,
	GUEST_SAMPLE_RDI,
	GUEST_SAMPLE_R8,
	GUEST_SAMPLE_R9,
	GUEST_SAMPLE_R10,
	GUEST_SAMPLE_R11,
	GUEST_SAMPLE_R12,
	GUEST_SAMPLE_R13,
	GUEST_SAMPLE_R14,
	GUEST_SAMPLE_R15,
	GUEST_SAMPLE_RIP,
	GUEST_SAMPLE_REGS = 17,
};

/* guest_sample.flags */
#define GUEST_SAMPLE_HAS_RIP 4u      /* regs[GUEST_SAMPLE_RIP] is of now, not of an earlier exit */
#define GUEST_SAMPLE_HAS_RSP 8u      /* so is rsp */
#define GUEST_SAMPLE_CR3 16u         /* so is cr3 */
#define GUEST_SAMPLE_HAS_GS_BASE 32u /* gs_base is known */
#define GUEST_SAMPLE_HAS_CPL 64u     /* cpl is known */
#define GUEST_SAMPLE_LA57 128u       /* CR4.LA57: five levels of page tables */
#define GUEST_SAMPLE_REAL_MODE 256u  /* CR0.PE is clear */

struct guest_sample {
	unsigned long long period;
	unsigned int event; /* index into the session's events */
	unsigned int flags;
	unsigned int cpl;
	unsigned int memory_bytes; /* behind this struct: a guest_sample_span and its bytes, again and again */
	unsigned long long regs[GUEST_SAMPLE_REGS];
	unsigned long long cr3, gs_base;
	unsigned long long task;      /* the guest's current task_struct; 0: not known */
	unsigned long long seen_area; /* the GS base when the vCPU was last seen in the kernel; 0: not known */
	/* By memory; 0: not known. */
	unsigned long long memory_cr3, memory_area;
	unsigned long long task_stack_end, interrupt_stack_end; /* the latter 0: not in use */
	unsigned long long entry_stack_end;
	unsigned long long user_sp; /* user space's stack pointer at its last entry into the kernel */
};

#endif
