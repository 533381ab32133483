// SPDX-License-Identifier: BSD-2-Clause
#include "attach/bpf_sample_priv.h"
#include "attach/vcpu_arch.h"
#include "attach/vcpu_rings.h"

_Static_assert(sizeof(struct guest_sample) == 336, "bpf/arm64/guest_sample_machine.h: no holes");

#define PSTATE_MODE 0x1fu /* Arm ARM, C5.2.18 */

/* SP_EL1 is on the processor, and frame records do without. */
static struct guest_regs registers(const struct guest_sample *raw)
{
	const bool user = (raw->regs[GUEST_SAMPLE_PSTATE] & PSTATE_MODE) == 0;

	return (struct guest_regs){
		.processor = GUEST_ARM64,
		.valid = raw->flags & GUEST_SAMPLE_IN_KVM,
		.arm64 = {.pc = raw->regs[GUEST_SAMPLE_PC],
	                  .sp = user ? raw->regs[GUEST_SAMPLE_SP_EL0] : 0,
	                  .fp = raw->regs[GUEST_SAMPLE_X29],
	                  .lr = raw->regs[GUEST_SAMPLE_X30],
	                  .tpidr = raw->tpidr,
	                  .el = user ? 0 : 1,
	                  .tables = {.ttbr0 = raw->ttbr0,
	                             .ttbr1 = raw->ttbr1,
	                             .tcr = raw->tcr,
	                             .mmu = raw->flags & GUEST_SAMPLE_MMU}},
	};
}

void bpf_sample_registers(const struct record_sample *record, const struct guest_sample *raw, bool has_kernel,
                          struct counter_sample *sample)
{
	sample->regs = registers(raw);
	sample->in_guest = vcpu_rings_in_guest(record->misc);
	if (sample->in_guest)
		vcpu_arch_place(&sample->regs, record->misc, record->ip, has_kernel);
}

/* All of them are known. */
void bpf_sample_by_memory(const struct record_sample *record G_GNUC_UNUSED, struct counter_sample *sample G_GNUC_UNUSED,
                          struct unwind_stacks *stacks G_GNUC_UNUSED)
{
}

const char *route_bpf_gives(struct guest *guest)
{
	if (!((const struct qemu_guest *)guest)->kernel.image)
		return "no tasks as long as the guest's kernel is not known; call chains: frame records";
	return "tasks; kernel chains: frame records; user chains: unwind tables or frame records";
}

bool route_bpf_lacks_stack(struct guest *guest G_GNUC_UNUSED)
{
	return false;
}

void route_bpf_settings(struct qemu_guest *qemu, const struct counter_route_config *config,
                        struct guest_sample_settings *settings)
{
	const struct os_kernel *kernel = config->kernel;
	struct page_walk walk;
	gpa_t tables;

	settings->entry_record = config->unwind ? config->unwind->entry_record : 0;
	if (config->tasks) {
		settings->task_mm = kernel->places.task_mm;
		settings->mm_pgd = kernel->places.mm_root;
	}
	/* With page table isolation, TTBR1_EL1 may be that of user space. */
	if (kernel && qemu_kernel_tables(qemu, kernel->page_tables, &walk) &&
	    page_walk_translate(&walk, kernel->page_tables, &tables))
		settings->kernel_tables = tables.value;
}
