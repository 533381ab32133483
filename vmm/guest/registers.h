// SPDX-License-Identifier: BSD-2-Clause
/*
 * The registers of a vCPU, of either processor. Their names are for x86/ and arm64/: what reads them in any other
 * folder asks guest_regs_*, guest_tables_* and guest_gprs_* (guest/gprs.h).
 */
#ifndef VPROF_GUEST_REGISTERS_H
#define VPROF_GUEST_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

enum guest_processor { GUEST_X86_64, GUEST_ARM64 };

/* The page tables of a vCPU of arm64 (Arm ARM, D19.2: registers of EL1). */
struct guest_tables_arm64 {
	uint64_t ttbr0, ttbr1, tcr; /* _EL1 */
	bool mmu;                   /* SCTLR_EL1.M; without it, addresses are physical */
};

/* The page tables of either processor. */
struct guest_tables {
	enum guest_processor processor;
	union {
		struct {
			uint64_t cr3;
			bool la57; /* CR4.LA57: five levels */
		};
		struct guest_tables_arm64 arm64;
	};
};

/* The state of a vCPU that a sample needs. */
struct guest_regs {
	enum guest_processor processor;
	bool valid; /* false: the ip is in a page of a host quirk; the sample is counted and not recorded */
	union {
		struct {
			uint64_t rip; /* the offset in CS */
			uint64_t rsp;
			uint64_t rbp;
			uint64_t rax, rdx, rdi, r10, r13; /* what rules of the kernel's unwind tables may name */
			uint64_t rbx, rcx, rsi, r8, r9, r11, r12, r14, r15;
			bool all; /* the nine before are known, too */
			uint64_t cr3;
			uint64_t gs_base;
			uint8_t cpl;      /* 0..3 */
			bool la57;        /* CR4.LA57: five levels of page tables */
			bool real_mode;   /* CR0.PE is clear: there are no page tables, and no Linux */
			uint32_t cs_base; /* in real mode; 0: not known */
		};
		struct {
			uint64_t pc, sp, fp, lr; /* SP: of the present exception level; X29; X30 */
			uint64_t tpidr;          /* TPIDR_EL1: where Linux has its per-CPU area */
			uint8_t el;              /* 0 or 1 */
			struct guest_tables_arm64 tables;
		} arm64;
	};
};

/* A vCPU as it is seen from outside: by a monitor, in a dump, or in KVM's memory. */
struct seen_vcpu {
	unsigned vcpu;
	struct guest_regs regs; /* of the current mode */
	uint64_t vectors;       /* of exceptions: where the table of them is */
	bool halted;
	bool long_mode; /* it runs 64-bit code, with page tables */
};

/* Of x86-64, by the names that users of probes give them. */
/* clang-format off */
#define GUEST_GPRS(X)                                       \
	X(rax) X(rbx) X(rcx) X(rdx) X(rsi) X(rdi) X(rsp) X(rbp) \
	X(r8) X(r9) X(r10) X(r11) X(r12) X(r13) X(r14) X(r15) X(rip) X(rflags)
/* clang-format on */

#define GUEST_GPRS_ARM64_X 31u

/* The general registers. */
struct guest_gprs {
	enum guest_processor processor;
	union {
		struct {
#define X(name) uint64_t name;
			GUEST_GPRS(X)
#undef X
		};
		struct {
			uint64_t x[GUEST_GPRS_ARM64_X], sp, pc, pstate; /* SP: of the present exception level */
		} arm64;
	};
};

static inline bool guest_regs_user(const struct guest_regs *regs)
{
	return regs->processor == GUEST_ARM64 ? regs->arm64.el == 0 : regs->cpl != 0;
}

/* There are no page tables, and no Linux; the ip is an offset in a segment. */
static inline bool guest_regs_real_mode(const struct guest_regs *regs)
{
	return regs->processor == GUEST_X86_64 && regs->real_mode;
}

/* In real mode: the physical address of the instruction. */
static inline uint32_t guest_regs_real_ip(const struct guest_regs *regs)
{
	return (uint32_t)(regs->cs_base + regs->rip);
}

static inline uint64_t guest_regs_ip(const struct guest_regs *regs)
{
	return regs->processor == GUEST_ARM64 ? regs->arm64.pc : regs->rip;
}

/* As a sample has it: the address in real mode is marked as such (vprof/recording.h). */
uint64_t guest_regs_sample_ip(const struct guest_regs *regs);

static inline void guest_regs_set_ip(struct guest_regs *regs, uint64_t ip)
{
	if (regs->processor == GUEST_ARM64)
		regs->arm64.pc = ip;
	else
		regs->rip = ip;
}

/* The stack pointer. */
static inline uint64_t guest_regs_stack(const struct guest_regs *regs)
{
	return regs->processor == GUEST_ARM64 ? regs->arm64.sp : regs->rsp;
}

/* The register with the address of the page tables of the process. */
static inline uint64_t guest_regs_root(const struct guest_regs *regs)
{
	return regs->processor == GUEST_ARM64 ? regs->arm64.tables.ttbr0 : regs->cr3;
}

static inline struct guest_tables guest_regs_tables(const struct guest_regs *regs)
{
	if (regs->processor == GUEST_ARM64)
		return (struct guest_tables){.processor = GUEST_ARM64, .arm64 = regs->arm64.tables};
	return (struct guest_tables){.cr3 = regs->cr3, .la57 = regs->la57};
}

/*
 * Where the kernel has this vCPU's per-CPU area: the GS base, which is the kernel's in the upper half, and right after
 * an entry, before swapgs, still user space's; or TPIDR_EL1. False: the registers do not tell now.
 */
static inline bool guest_regs_area(const struct guest_regs *regs, uint64_t *area)
{
	if (regs->processor == GUEST_ARM64 ? !regs->valid : regs->cpl != 0 || regs->gs_base >> 63 == 0)
		return false;
	*area = regs->processor == GUEST_ARM64 ? regs->arm64.tpidr : regs->gs_base;
	return true;
}

#endif
