// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program of guest_sample_program.h for hosts of arm64. Which task runs, and so the page tables of its user space,
 * is found in the guest's memory: TTBR0_EL1 is on the processor (vcpu_registers.h).
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "guest_sample.h"
#include "vcpu_registers.h"

/* A walk by frame records. The unwinder (guest/arm64/frame_record.c) will take the same and judge it. */
struct walk {
	__u64 fp;
	__u64 user_sp; /* the stack pointer in user space; 0: not known */
	bool in_user;
};

#include "guest_sample_program.h"

/* User space's header has the same struct by other names. */
struct pt_regs___kernel {
	__u64 regs[31];
	int syscallno;
} KERNEL;

#define SYSCALL_IOCTL 29
#define KERNEL_HALF 63      /* the bit that addresses of the kernel have */
#define PSTATE_MODE 0x1full /* Arm ARM, C5.2.18 */
#define MODE_EL0 0
#define PT_REGS_BYTES 272 /* struct user_pt_regs, and where x29, sp and pstate are in it */
#define PT_REGS_X29 232
#define PT_REGS_SP 248
#define PT_REGS_PSTATE 264
#define NOWHERE (~0ull)
/* TCR_EL1 and descriptors (Arm ARM, D19.2 and D8.3.1), of addresses of 48 bits: more are left to the engine. */
#define LEVELS_MAX 5
#define TTBR_ADDRESS 0x0000ffffffffffc0ull
#define ENTRY_ADDRESS 0x0000fffffffff000ull
#define ENTRY_VALID 1
#define ENTRY_TABLE 2

/* ---- guest memory ---- */

/* The size of pages: of the code for it in TCR_EL1, which differs between the halves. */
static __u32 page_shift_of(__u64 tcr, bool high)
{
	__u32 granule = tcr >> (high ? 30 : 14) & 3;

	if (high)
		return granule == 1 ? 14 : granule == 2 ? 12 : 16;
	return granule == 0 ? 12 : granule == 1 ? 16 : 14;
}

/* As guest/arm64/page_tables_arm64.c does it: a guest physical address; NOWHERE when the page is not there. */
__noinline __u64 translate(struct scratch *s, __u64 gva)
{
	if (!s || !(s->sample.flags & GUEST_SAMPLE_MMU))
		return NOWHERE;
	bool high = gva >> KERNEL_HALF;
	__u32 page_shift = page_shift_of(s->sample.tcr, high), stride = page_shift - 3;
	__u32 bits = 64 - (s->sample.tcr >> (high ? 16 : 0) & 63);
	__u64 table = (high ? s->sample.ttbr1 : s->sample.ttbr0) & TTBR_ADDRESS, entry;

	if (!table)
		return NOWHERE;
	for (int level = LEVELS_MAX; level > 0; level--) {
		__u32 shift = page_shift + (level - 1) * stride;

		if (shift >= bits || shift > 63)
			continue;
		__u64 inside = (1ull << shift) - 1, index = gva >> shift;

		/* The highest level has fewer entries. */
		index &= (1ull << (bits - shift < stride ? bits - shift : stride)) - 1;
		__u64 hva = hva_of(s, table + index * sizeof(entry));

		if (!hva || bpf_probe_read_user(&entry, sizeof(entry), (void *)hva) || !(entry & ENTRY_VALID))
			return NOWHERE;
		table = entry & ENTRY_ADDRESS & ~((1ull << page_shift) - 1);
		if (level == 1 || !(entry & ENTRY_TABLE))
			return (table & ~inside) | (gva & inside);
	}
	return NOWHERE;
}

__noinline __u64 hva_of_page(struct scratch *s, __u64 gva)
{
	if (!s)
		return 0;
	if (s->cached_page == gva)
		return s->cached_hva;
	__u64 gpa = translate(s, gva);

	if (gpa == NOWHERE)
		return 0;
	s->cached_hva = hva_of(s, gpa);
	s->cached_page = gva;
	return s->cached_hva;
}

/* ---- what a call chain is made of ---- */

/* The kernel's outermost record, which is empty, is in a struct pt_regs with what was interrupted. */
__noinline bool walk_entry(struct scratch *s)
{
	if (!s || !settings.entry_record)
		return false;
	__u64 at = s->walk.fp - settings.entry_record;

	if (!copy(s, at, PT_REGS_BYTES))
		return false;
	s->walk.in_user = (read_word(s, at + PT_REGS_PSTATE) & PSTATE_MODE) == MODE_EL0;
	s->walk.user_sp = s->walk.in_user ? read_word(s, at + PT_REGS_SP) : 0;
	s->walk.fp = read_word(s, at + PT_REGS_X29);
	return !s->walk.in_user || settings.user;
}

__noinline bool walk_step(struct scratch *s)
{
	if (!s)
		return false;
	__u64 fp = s->walk.fp;

	if (fp == 0 || (fp & 7) != 0 || (fp >> KERNEL_HALF != 0) == s->walk.in_user || !copy(s, fp, 2 * sizeof(__u64)))
		return false;
	__u64 next = read_word(s, fp);

	if (next == 0 && !s->walk.in_user)
		return walk_entry(s);
	s->walk.fp = next;
	return next != fp;
}

/* ---- the vCPU ---- */

static bool call_of(struct task_struct *task, __u64 *fd)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)task);

	*fd = BPF_CORE_READ(regs, regs[0]);
	return BPF_CORE_READ(regs, syscallno) == SYSCALL_IOCTL && BPF_CORE_READ(regs, regs[1]) == IOCTL_KVM_RUN;
}

static void fill(struct guest_sample *sample, struct kvm_vcpu *vcpu)
{
	bpf_core_read(sample->regs, sizeof(sample->regs), &vcpu->arch.ctxt.regs);
	sample->ttbr1 = settings.kernel_tables ? settings.kernel_tables : SYSTEM_REGISTER(vcpu, TTBR1_EL1);
	sample->tcr = SYSTEM_REGISTER(vcpu, TCR_EL1);
	sample->tpidr = SYSTEM_REGISTER(vcpu, TPIDR_EL1);
	if (SYSTEM_REGISTER(vcpu, SCTLR_EL1) & SCTLR_MMU)
		sample->flags |= GUEST_SAMPLE_MMU;
}

/* The current task, as every entry from user space finds it, and its page tables. */
static void find_task(struct scratch *s)
{
	struct guest_sample *sample = &s->sample;

	s->area = sample->tpidr >> KERNEL_HALF ? sample->tpidr : 0;
	sample->task = read_per_cpu(s, settings.current_task);
	if (!sample->task || !settings.mm_pgd)
		return;
	__u64 mm = read_word(s, sample->task + settings.task_mm);
	__u64 pgd = mm ? read_word(s, mm + settings.mm_pgd) : 0;
	__u64 table = pgd ? translate(s, pgd) : NOWHERE;

	if (table != NOWHERE)
		sample->ttbr0 = table;
}

static void take(struct scratch *s, struct kvm_vcpu *vcpu, __u64 number __attribute__((unused)))
{
	struct guest_sample *sample = &s->sample;

	fill(sample, vcpu);
	s->cached_page = NOWHERE;
	find_task(s);
	s->walk = (struct walk){.fp = sample->regs[GUEST_SAMPLE_X29]};
	s->walk.in_user = (sample->regs[GUEST_SAMPLE_PSTATE] & PSTATE_MODE) == MODE_EL0;
	if (s->walk.in_user)
		s->walk.user_sp = sample->regs[GUEST_SAMPLE_SP_EL0];
	if (settings.memory == GUEST_SAMPLE_NO_MEMORY)
		return;
	copy_frames(s);
	copy_user_stack(s);
}
