// SPDX-License-Identifier: BSD-2-Clause
/* A sample of a guest of arm64: for guest_sample.h. */
#ifndef VPROF_ATTACH_BPF_ARM64_GUEST_SAMPLE_MACHINE_H
#define VPROF_ATTACH_BPF_ARM64_GUEST_SAMPLE_MACHINE_H

/* As struct user_pt_regs of asm/ptrace.h has them. KVM saves all of them at each exit, and SP_EL0 as their SP. */
enum guest_sample_reg {
	GUEST_SAMPLE_X29 = 29,
	GUEST_SAMPLE_X30,
	GUEST_SAMPLE_SP_EL0,
	GUEST_SAMPLE_PC,
	GUEST_SAMPLE_PSTATE,
	GUEST_SAMPLE_REGS,
};

/* guest_sample.flags */
#define GUEST_SAMPLE_MMU 4096u /* SCTLR_EL1.M */

struct guest_sample {
	unsigned long long period;
	unsigned int event; /* index into the session's events */
	unsigned int flags;
	unsigned int reserved;
	unsigned int memory_bytes; /* behind this struct: a guest_sample_span and its bytes, again and again */
	unsigned long long regs[GUEST_SAMPLE_REGS];
	/*
	 * ttbr0: of the current task; 0: it has no user space, or is not known. The others are what they were when the
	 * vCPU was last taken off a processor, which a kernel does not change.
	 */
	unsigned long long ttbr0, ttbr1, tcr, tpidr;
	unsigned long long task; /* the guest's current task_struct; 0: not known */
};

#endif
