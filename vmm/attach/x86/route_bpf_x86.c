// SPDX-License-Identifier: BSD-2-Clause
#include "attach/bpf_sample_priv.h"
#include "attach/kvm_vendor.h"

bool route_bpf_lacks_stack(struct guest *guest G_GNUC_UNUSED)
{
	enum guest_sample_vendor vendor;

	return route_bpf_withholds() || (kvm_vendor_find(&vendor) && vendor == GUEST_SAMPLE_VMX);
}

/* What it takes to find registers in memory; nothing where the kernel is not known. */
static void settings_by_memory(struct qemu_guest *qemu, const struct counter_route_config *config,
                               struct guest_sample_settings *settings)
{
	struct cpu_area areas[GUEST_SAMPLE_VCPUS_MAX];
	struct page_walk walk;

	if (!config->areas || !qemu_kernel_tables(qemu, config->page_tables, &walk))
		return;
	settings->by_memory = 1;
	settings->kernel_tables = walk.tables.cr3;
	settings->direct_map = cpu_area_direct_map(config->areas, &walk);
	settings->task_stack = config->areas->task_stack;
	settings->mm_pgd = config->areas->mm_pgd;
	settings->current_task = config->areas->current_task;
	settings->task_mm = config->areas->task_mm;
	settings->interrupt_in_use = config->areas->interrupt_in_use;
	settings->entry_stack = config->areas->entry_stack;
	size_t n = cpu_areas_read(config->areas, &walk, areas, G_N_ELEMENTS(areas));

	for (size_t i = 0; i < n; i++)
		settings->cpus[i] = (struct guest_sample_cpu){areas[i].area, areas[i].apic_id};
}

void route_bpf_settings(struct qemu_guest *qemu, const struct counter_route_config *config,
                        struct guest_sample_settings *settings)
{
	if (route_bpf_lacks_stack(&qemu->guest))
		settings_by_memory(qemu, config, settings);
}

const char *route_bpf_gives(struct guest *guest)
{
	const bool lacks = route_bpf_lacks_stack(guest);

	if (!((const struct qemu_guest *)guest)->kernel.image)
		return lacks ? "no tasks and no call chains as long as the guest's kernel is not known"
		             : "no tasks as long as the guest's kernel is not known; call chains: frame pointers";
	if (lacks)
		return "tasks, found in memory; kernel chains: frame pointers, or ORC with the stack pointer found by search; "
		       "user chains: frame pointers, or unwind tables with the stack pointer found by search; below the "
		       "kernel, unwind tables";
	return "tasks; kernel chains: ORC or frame pointers; user chains: unwind tables or frame pointers";
}
