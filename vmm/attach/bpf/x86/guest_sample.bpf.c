// SPDX-License-Identifier: BSD-2-Clause
/* The program of guest_sample_program.h for hosts of x86-64. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "guest_sample.h"

/* ---- the kernel's ---- */

#define KERNEL __attribute__((preserve_access_index))

struct kvm_vcpu_arch {
	unsigned long regs[GUEST_SAMPLE_REGS];
	__u32 regs_avail;
	unsigned long cr0, cr3, cr4;
} KERNEL;

/* A walk by frame pointers. The unwinder (guest/unwind_frame_pointer.c) will take the same and judge it; this finds
 * what it will read. */
struct walk {
	__u64 bp;
	__u64 user_sp; /* the stack pointer in user space; 0: not known */
	bool in_user;
};

#include "guest_sample_program.h"
#include "kvm_registers.h"

struct kvm_segment {
	__u64 base;
} KERNEL;

struct vcpu_pvm {
	struct kvm_segment seg[8];
	int cpl;
} KERNEL;

struct vmcb_seg {
	__u64 base;
} KERNEL;

struct vmcb_save_area {
	struct vmcb_seg gs;
	__u8 cpl;
	__u64 cr3, cr4;
} KERNEL;

struct vmcb {
	struct vmcb_save_area save;
} KERNEL;

struct kvm_vmcb_info {
	struct vmcb *ptr;
} KERNEL;

struct vcpu_svm {
	struct vmcb *vmcb;           /* in use: the guest's, or that of a guest of its own */
	struct kvm_vmcb_info vmcb01; /* the guest's; from 5.13 on */
} KERNEL;

struct loaded_vmcs {
	int cpu;
} KERNEL;

struct vcpu_vmx {
	struct loaded_vmcs vmcs01, *loaded_vmcs; /* as the VMCBs above */
} KERNEL;

/* User space's header has the same struct by other names. */
struct pt_regs___kernel {
	unsigned long di, si, orig_ax;
} KERNEL;

/* ---- ours ---- */

#define SYSCALL_IOCTL 16
#define SEGMENT_GS 5     /* enum VCPU_SREG_GS */
#define AVAILABLE_CR3 19 /* number of CR3 in regs_avail: behind rip, PDPTR and CR0 (enum kvm_reg) */
#define CR0_PE 1ul
#define CR4_LA57 (1ul << 12) /* SDM Vol. 3A, 2.5 */
#define LEVEL_BITS 9
#define LEVEL_MASK 511
#define ENTRY_PRESENT 1ull /* SDM Vol. 3A, tables 4-14 to 4-20 */
#define ENTRY_LARGE (1ull << 7)
#define ENTRY_ADDRESS_MASK 0x000ffffffffff000ull
#define PT_REGS_BYTES 168 /* struct pt_regs of every Linux on x86-64, and where bp, cs and sp are in it */
#define PT_REGS_BP 32
#define PT_REGS_CS 136
#define PT_REGS_SP 152
#define KERNEL_STACK_BYTES 0x4000ull /* a task's, at a multiple of that; an interrupt stack's, at any page */
#define ENTRY_AREA_SHIFT 39          /* every processor's entry stacks, a page each (asm/cpu_entry_area.h) */
#define ENTRY_AREA (0xfffffe0000000000ull >> ENTRY_AREA_SHIFT)
#define KERNEL_HALF 63 /* the bit that addresses of the kernel have */

/* By vCPU: the GS base when it was last seen in the kernel, as linux/task.h has it; 0 before. */
__u64 areas[GUEST_SAMPLE_VCPUS_MAX];

/* ---- guest memory ---- */

/* By the guest's page tables, as guest/page_walk.c does it; 0 when the page is not there. */
__noinline __u64 hva_of_page(struct scratch *s, __u64 gva)
{
	if (!s)
		return 0;
	if (s->cached_page == gva)
		return s->cached_hva;
	__u64 table = s->tables & ENTRY_ADDRESS_MASK, entry;
	bool five_levels = s->sample.flags & GUEST_SAMPLE_LA57;

	for (int level = 5; level > 0; level--) {
		if (level == 5 && !five_levels)
			continue;
		int shift = PAGE_SHIFT + (level - 1) * LEVEL_BITS;
		__u64 hva = hva_of(s, table), index = gva >> shift & LEVEL_MASK;

		if (!hva || bpf_probe_read_user(&entry, sizeof(entry), (void *)(hva + index * sizeof(entry))) ||
		    !(entry & ENTRY_PRESENT))
			return 0;
		table = entry & ENTRY_ADDRESS_MASK;
		if (level == 1 || (level < 4 && (entry & ENTRY_LARGE))) {
			__u64 mask = (1ull << shift) - 1;

			s->cached_hva = hva_of(s, (table & ~mask) | (gva & mask));
			s->cached_page = gva;
			return s->cached_hva;
		}
	}
	return 0;
}

/* ---- what a call chain is made of ---- */

/* Where the kernel was entered: what was interrupted goes on from there. */
__noinline bool walk_pt_regs(struct scratch *s, __u64 at)
{
	if (!s || !copy(s, at, PT_REGS_BYTES))
		return false;
	s->walk.bp = read_word(s, at + PT_REGS_BP);
	s->walk.in_user = (read_word(s, at + PT_REGS_CS) & 3) == 3;
	s->walk.user_sp = s->walk.in_user ? read_word(s, at + PT_REGS_SP) : 0;
	return !s->walk.in_user || settings.user;
}

__noinline bool walk_step(struct scratch *s)
{
	if (!s)
		return false;
	__u64 bp = s->walk.bp;

	if (!s->walk.in_user && (bp & 7) == 1)
		return walk_pt_regs(s, bp - 1);
	if (bp == 0 || (bp & 7) != 0 || !copy(s, bp, 2 * sizeof(__u64)))
		return false;
	s->walk.bp = read_word(s, bp);
	return s->walk.bp != bp;
}

/* What lies between the stack pointer and the stack's end; false when that is more than is taken. */
__noinline bool copy_stack(struct scratch *s, __u64 sp, __u64 end)
{
	__u64 at = sp & ~7ull;

	if (!s)
		return false;
	for (int i = 0; i < GUEST_SAMPLE_STACK_PAGES && at < end; i++) {
		__u64 bytes = PAGE_BYTES - (at & (PAGE_BYTES - 1));

		if (!copy_in_page(s, at, bytes))
			return false;
		at += bytes;
	}
	return at == end;
}

/* The address of the last word of the interrupt stack; 0: not known. */
static __u64 interrupt_stack_last(struct scratch *s)
{
	__u64 at = read_per_cpu(s, settings.interrupt_stack);

	return at ? at - settings.interrupt_stack_behind : 0;
}

/* Where a task's stack with this end has the registers of its user space. */
static __u64 task_regs(__u64 end)
{
	return end - settings.stack_padding - PT_REGS_BYTES;
}

/* The stacks up to their ends, where a task's has the registers of its user space. */
static void copy_stacks(struct scratch *s)
{
	__u64 sp = s->sample.regs[GUEST_SAMPLE_RSP], last = interrupt_stack_last(s), end, regs;

	/* An interrupt stack's last word is the stack pointer before (call_on_stack of asm/irq_stack.h). */
	if (sp - (last + sizeof(__u64) - KERNEL_STACK_BYTES) < KERNEL_STACK_BYTES) {
		if (!copy_stack(s, sp, last + sizeof(__u64)))
			return;
		sp = read_word(s, last);
	}
	if (sp >> ENTRY_AREA_SHIFT == ENTRY_AREA) {
		end = (sp | (PAGE_BYTES - 1)) + 1;
		regs = end - PT_REGS_BYTES;
	} else {
		end = (sp | (KERNEL_STACK_BYTES - 1)) + 1;
		regs = task_regs(end);
	}
	if (!copy_stack(s, sp, end) || !walk_pt_regs(s, regs) || !s->walk.in_user)
		return;
	/* The entry code has not saved it yet, or has restored it already. */
	if (sp > regs + PT_REGS_BP)
		s->walk.bp = s->sample.regs[GUEST_SAMPLE_RBP];
	copy_frames(s);
}

/* ---- without the processor's registers ---- */

/* The per-CPU area of the processor with this APIC id, which is KVM's number of the vCPU. */
static __u64 area_of(__u64 apic_id)
{
	for (__u32 i = 0; i < GUEST_SAMPLE_VCPUS_MAX; i++)
		if (settings.cpus[i].area && settings.cpus[i].apic_id == apic_id)
			return settings.cpus[i].area;
	return 0;
}

static void use_tables(struct scratch *s, __u64 cr3)
{
	s->tables = cr3;
	s->cached_page = ~0ull;
}

static __u64 interrupt_stack_end(struct scratch *s)
{
	__u64 at = s->area + settings.interrupt_in_use;

	if (!s->area || !settings.interrupt_in_use || !(read_word(s, at & ~7ull) >> (at & 7) * 8 & 1))
		return 0;
	__u64 last = interrupt_stack_last(s);

	return last ? last + sizeof(__u64) : 0;
}

/* All by the kernel's own tables, which have every kernel address. */
static void find_by_memory(struct scratch *s)
{
	struct guest_sample *sample = &s->sample;

	use_tables(s, settings.kernel_tables);
	s->area = sample->memory_area;
	sample->task = read_per_cpu(s, settings.current_task);
	if (!sample->task)
		return;
	__u64 stack = read_word(s, sample->task + settings.task_stack);
	__u64 mm = read_word(s, sample->task + settings.task_mm);
	__u64 pgd = mm ? read_word(s, mm + settings.mm_pgd) : 0;

	sample->memory_cr3 = pgd ? pgd - settings.direct_map : settings.kernel_tables;
	sample->task_stack_end = stack ? stack + KERNEL_STACK_BYTES : 0;
	sample->interrupt_stack_end = interrupt_stack_end(s);
	sample->entry_stack_end = read_per_cpu(s, settings.entry_stack);
	if (!mm)
		sample->flags |= GUEST_SAMPLE_KERNEL_TASK;
}

/* The part of a stack that is before its end, which is a page's. */
static void copy_before(struct scratch *s, __u64 end)
{
	for (int i = GUEST_SAMPLE_SEARCHED_PAGES; i > 0 && end; i--)
		copy_in_page(s, end - i * PAGE_BYTES, PAGE_BYTES);
}

/*
 * Of user space's stack what is before the stack pointer of its last entry into the kernel: there may be the vCPU's by
 * now.
 */
static void copy_below(struct scratch *s)
{
	__u64 end = s->walk.user_sp & ~7ull, page = end & ~(PAGE_BYTES - 1);

	if (end == 0 || (end > page && !copy_in_page(s, page, end - page)))
		return;
	for (int i = 1; i <= GUEST_SAMPLE_SEARCHED_PAGES && copy_in_page(s, page - i * PAGE_BYTES, PAGE_BYTES); i++)
		;
}

/* Where RIP is not known either, it may be in the kernel or in user space: both parts are copied. */
static void copy_by_memory(struct scratch *s)
{
	struct guest_sample *sample = &s->sample;
	__u64 bp = sample->regs[GUEST_SAMPLE_RBP], end = sample->task_stack_end;
	bool has_rip = sample->flags & GUEST_SAMPLE_HAS_RIP, user = bp >> KERNEL_HALF == 0;
	bool has_user = end && !(sample->flags & GUEST_SAMPLE_KERNEL_TASK);

	s->walk = (struct walk){.bp = bp};
	if (settings.memory == GUEST_SAMPLE_NO_MEMORY || !sample->memory_cr3)
		return;
	if (has_rip)
		user = sample->regs[GUEST_SAMPLE_RIP] >> KERNEL_HALF == 0;
	if (settings.memory == GUEST_SAMPLE_STACK && !(has_rip && user)) {
		copy_before(s, sample->interrupt_stack_end);
		copy_before(s, sample->task_stack_end);
		if (sample->entry_stack_end)
			copy(s, sample->entry_stack_end - PT_REGS_BYTES, PT_REGS_BYTES);
	}
	if (settings.memory == GUEST_SAMPLE_STACK && !user) {
		if (!walk_pt_regs(s, task_regs(sample->task_stack_end)) || !s->walk.in_user)
			return;
	} else if (has_user) {
		s->walk.user_sp = sample->user_sp = read_word(s, task_regs(end) + PT_REGS_SP);
	}
	s->walk.in_user = s->walk.in_user || (has_rip && user);
	use_tables(s, sample->memory_cr3);
	copy_frames(s);
	copy_user_stack(s);
	if (sample->user_sp && settings.user_stack && settings.user)
		copy_below(s);
}

static void copy_memory(struct scratch *s)
{
	bool in_user = s->sample.cpl == 3;

	s->walk = (struct walk){.bp = s->sample.regs[GUEST_SAMPLE_RBP], .in_user = in_user};
	if (in_user && s->sample.flags & GUEST_SAMPLE_HAS_RSP)
		s->walk.user_sp = s->sample.regs[GUEST_SAMPLE_RSP];
	/* A page table that is no longer the one in use may be anything by now. */
	if (settings.memory == GUEST_SAMPLE_NO_MEMORY || (in_user && !(s->sample.flags & GUEST_SAMPLE_CR3)))
		return;
	if (settings.memory == GUEST_SAMPLE_FRAMES || in_user)
		copy_frames(s);
	else if (s->sample.flags & GUEST_SAMPLE_HAS_RSP)
		copy_stacks(s);
	copy_user_stack(s);
}

/* ---- the vCPU ---- */

static void fill_cr4(struct guest_sample *sample, unsigned long cr4)
{
	if (cr4 & CR4_LA57)
		sample->flags |= GUEST_SAMPLE_LA57;
}

/* The registers are those of a guest that our guest runs; of our guest itself, there are these page tables, or 0. */
static void fill_nested(struct guest_sample *sample, __u64 cr3, __u64 cr4)
{
	sample->flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_NESTED;
	__builtin_memset(sample->regs, 0, sizeof(sample->regs));
	sample->cr3 = cr3;
	fill_cr4(sample, cr4);
}

/* What KVM's machine-specific part knows. */
static void fill_vmx(struct guest_sample *sample, struct kvm_vcpu *vcpu)
{
	struct vcpu_vmx *vmx = (void *)vcpu; /* the first member of it */

	if (bpf_core_type_exists(struct vcpu_vmx) && BPF_CORE_READ(vmx, loaded_vmcs) != &vmx->vmcs01)
		fill_nested(sample, 0, 0);
}

static void fill_svm(struct guest_sample *sample, struct kvm_vcpu *vcpu)
{
	struct vcpu_svm *svm = (void *)vcpu;

	if (!bpf_core_type_exists(struct vcpu_svm) || !bpf_core_type_exists(struct vmcb_save_area))
		return;
	struct vmcb *vmcb = BPF_CORE_READ(svm, vmcb), *own = BPF_CORE_READ(svm, vmcb01.ptr);

	if (vmcb != own) {
		fill_nested(sample, BPF_CORE_READ(own, save.cr3), BPF_CORE_READ(own, save.cr4));
		return;
	}
	sample->cr3 = BPF_CORE_READ(vmcb, save.cr3);
	sample->gs_base = BPF_CORE_READ(vmcb, save.gs.base);
	sample->cpl = BPF_CORE_READ(vmcb, save.cpl);
	sample->flags |= GUEST_SAMPLE_CR3 | GUEST_SAMPLE_HAS_GS_BASE | GUEST_SAMPLE_HAS_CPL;
}

static void fill_pvm(struct guest_sample *sample, struct kvm_vcpu *vcpu)
{
	struct vcpu_pvm *pvm = (void *)vcpu;

	if (!bpf_core_type_exists(struct vcpu_pvm))
		return;
	sample->gs_base = BPF_CORE_READ(pvm, seg[SEGMENT_GS].base);
	sample->cpl = BPF_CORE_READ(pvm, cpl);
	sample->flags |= GUEST_SAMPLE_CR3 | GUEST_SAMPLE_HAS_GS_BASE | GUEST_SAMPLE_HAS_CPL;
	if (sample->cpl == 0)
		sample->flags |= GUEST_SAMPLE_EMULATED;
}

static void fill(struct guest_sample *sample, struct kvm_vcpu *vcpu)
{
	struct kvm_vcpu___7_2 *since_7_2 = (void *)vcpu;
	__u64 available = registers_available(vcpu);

	if (bpf_core_field_exists(since_7_2->arch.rip)) {
		bpf_core_read(sample->regs, sizeof(since_7_2->arch.regs), &since_7_2->arch.regs);
		sample->regs[GUEST_SAMPLE_RIP] = BPF_CORE_READ(since_7_2, arch.rip);
	} else {
		bpf_core_read(sample->regs, sizeof(sample->regs), &vcpu->arch.regs);
	}
	sample->cr3 = BPF_CORE_READ(vcpu, arch.cr3);
	if (available >> GUEST_SAMPLE_RIP & 1)
		sample->flags |= GUEST_SAMPLE_HAS_RIP;
	if (available >> GUEST_SAMPLE_RSP & 1)
		sample->flags |= GUEST_SAMPLE_HAS_RSP;
	if (available >> AVAILABLE_CR3 & 1)
		sample->flags |= GUEST_SAMPLE_CR3;
	fill_cr4(sample, BPF_CORE_READ(vcpu, arch.cr4));
	if (!(BPF_CORE_READ(vcpu, arch.cr0) & CR0_PE))
		sample->flags |= GUEST_SAMPLE_REAL_MODE;
	if (settings.vendor == GUEST_SAMPLE_VMX)
		fill_vmx(sample, vcpu);
	else if (settings.vendor == GUEST_SAMPLE_SVM)
		fill_svm(sample, vcpu);
	else if (settings.vendor == GUEST_SAMPLE_PVM)
		fill_pvm(sample, vcpu);
}

static bool call_of(struct task_struct *task, __u64 *fd)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs((void *)task);

	*fd = BPF_CORE_READ(regs, di);
	return BPF_CORE_READ(regs, orig_ax) == SYSCALL_IOCTL && BPF_CORE_READ(regs, si) == IOCTL_KVM_RUN;
}

static void take(struct scratch *s, struct kvm_vcpu *vcpu, __u64 number)
{
	fill(&s->sample, vcpu);
	use_tables(s, s->sample.cr3);
	if (s->sample.cpl == 0 && s->sample.gs_base >> KERNEL_HALF)
		areas[number] = s->sample.gs_base;
	s->sample.seen_area = areas[number];
	s->area = s->sample.cr3 ? areas[number] : 0;
	if (settings.by_memory) {
		s->sample.memory_area = area_of(BPF_CORE_READ(vcpu, vcpu_id));
		find_by_memory(s);
	} else {
		s->sample.task = read_per_cpu(s, settings.current_task);
	}
	if (s->sample.flags & GUEST_SAMPLE_NESTED)
		; /* its stacks are not this guest's */
	else if (settings.by_memory)
		copy_by_memory(s);
	else
		copy_memory(s);
}
