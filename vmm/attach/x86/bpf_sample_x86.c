// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "attach/bpf_sample_priv.h"
#include "attach/vcpu_rings.h"

_Static_assert(sizeof(struct guest_sample) == 240, "bpf/guest_sample.h: no holes");

/* From the direct map to where the maps of single pages are (Documentation/arch/x86/x86_64/mm.rst). */
#define KERNEL_DATA_4_LEVELS UINT64_C(0xffff800000000000)
#define KERNEL_DATA_5_LEVELS UINT64_C(0xff00000000000000)
#define KERNEL_DATA_END UINT64_C(0xffffff0000000000)

static struct guest_regs registers(const struct guest_sample *raw)
{
	const unsigned long long *regs = raw->regs;

	return (struct guest_regs){
		.rip = regs[GUEST_SAMPLE_RIP],
		.rsp = raw->flags & GUEST_SAMPLE_HAS_RSP ? regs[GUEST_SAMPLE_RSP] : 0,
		.rbp = regs[GUEST_SAMPLE_RBP],
		.rax = regs[GUEST_SAMPLE_RAX],
		.rdx = regs[GUEST_SAMPLE_RDX],
		.rdi = regs[GUEST_SAMPLE_RDI],
		.r10 = regs[GUEST_SAMPLE_R10],
		.r13 = regs[GUEST_SAMPLE_R13],
		.rbx = regs[GUEST_SAMPLE_RBX],
		.rcx = regs[GUEST_SAMPLE_RCX],
		.rsi = regs[GUEST_SAMPLE_RSI],
		.r8 = regs[GUEST_SAMPLE_R8],
		.r9 = regs[GUEST_SAMPLE_R9],
		.r11 = regs[GUEST_SAMPLE_R11],
		.r12 = regs[GUEST_SAMPLE_R12],
		.r14 = regs[GUEST_SAMPLE_R14],
		.r15 = regs[GUEST_SAMPLE_R15],
		.all = raw->flags & GUEST_SAMPLE_HAS_RSP,
		.cr3 = raw->cr3,
		.gs_base = raw->gs_base,
		.cpl = (uint8_t)raw->cpl,
		.la57 = raw->flags & GUEST_SAMPLE_LA57,
		.real_mode = raw->flags & GUEST_SAMPLE_REAL_MODE,
		/* Also of a sample outside the guest: it stands where it left. */
		.valid = raw->flags & GUEST_SAMPLE_HAS_RIP,
	};
}

/* Where the guest is, by perf, which asks KVM; or by KVM's own registers where KVM is what runs the guest. */
static bool place(const struct record_sample *record, const struct guest_sample *raw, bool has_kernel,
                  struct guest_regs *regs)
{
	bool in_guest = vcpu_rings_in_guest(record->misc);

	if (in_guest) {
		regs->rip = record->ip;
		regs->valid = true;
	}
	if (!(raw->flags & (GUEST_SAMPLE_HAS_CPL | GUEST_SAMPLE_REAL_MODE)) && regs->valid)
		regs->cpl = vcpu_rings_user(record->misc, regs->rip, has_kernel) ? 3 : 0;
	return in_guest || (raw->flags & GUEST_SAMPLE_EMULATED &&
	                    (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL);
}

/* Of all the registers, the page tables are the guest's; enough to name the task that runs the nested guest. */
static void nested(const struct record_sample *record, const struct guest_sample *raw, struct counter_sample *sample)
{
	sample->regs = (struct guest_regs){.cr3 = raw->cr3, .la57 = raw->flags & GUEST_SAMPLE_LA57};
	sample->nested = vcpu_rings_in_guest(record->misc);
	sample->in_guest = false;
}

void bpf_sample_registers(const struct record_sample *record, const struct guest_sample *raw, bool has_kernel,
                          struct counter_sample *sample)
{
	sample->regs = registers(raw);
	sample->in_guest = place(record, raw, has_kernel, &sample->regs);
	if (raw->flags & GUEST_SAMPLE_NESTED)
		nested(record, raw, sample);
}

/*
 * Whether a register has an address of the kernel's data. User space has none: what is negative there is a small number
 * or a fraction's pattern.
 */
static bool has_kernel_address(const struct guest_sample *raw)
{
	const uint64_t start = raw->flags & GUEST_SAMPLE_LA57 ? KERNEL_DATA_5_LEVELS : KERNEL_DATA_4_LEVELS;

	for (unsigned i = 0; i < GUEST_SAMPLE_RIP; i++)
		if (i != GUEST_SAMPLE_RSP && raw->regs[i] >= start && raw->regs[i] < KERNEL_DATA_END)
			return true;
	return false;
}

void bpf_sample_by_memory(const struct record_sample *record, struct counter_sample *sample,
                          struct unwind_stacks *stacks)
{
	struct guest_regs *regs = &sample->regs;
	struct guest_sample raw;

	memcpy(&raw, record->raw, sizeof(raw));
	regs->cr3 = raw.memory_cr3;
	regs->gs_base = raw.memory_area;
	sample->area = raw.memory_area;
	sample->task = raw.task;
	sample->stacks = NULL;
	if (!stacks || (regs->cpl != 0 && (!sample->user_stack || raw.user_sp == 0)))
		return;
	regs->rsp = 0;
	sample->stacks = stacks;
	if (regs->cpl != 0) {
		/* Of the general registers, KVM reads no other from the VMCS. */
		regs->all = true;
		*stacks = (struct unwind_stacks){.user = raw.user_sp};
		return;
	}
	*stacks = (struct unwind_stacks){
		.task = raw.task_stack_end,
		.interrupt = raw.interrupt_stack_end,
		.entry = raw.entry_stack_end,
		.in_kernel = raw.flags & GUEST_SAMPLE_KERNEL_TASK || has_kernel_address(&raw),
	};
}
