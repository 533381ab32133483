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
	const struct os_kernel *kernel = config->kernel;
	struct os_area areas[GUEST_SAMPLE_VCPUS_MAX];
	struct page_walk walk;

	if (!kernel || !kernel->areas || !qemu_kernel_tables(qemu, kernel->page_tables, &walk))
		return;
	settings->by_memory = 1;
	settings->kernel_tables = walk.tables.cr3;
	settings->direct_map = kernel->areas->direct_map(kernel, &walk);
	settings->task_stack = kernel->places.task_stack;
	settings->mm_pgd = kernel->places.mm_root;
	settings->current_task = kernel->places.current_task;
	settings->task_mm = kernel->places.task_mm;
	settings->interrupt_in_use = kernel->places.interrupt_in_use;
	settings->entry_stack = kernel->places.entry_stack;
	size_t n = kernel->areas->read(kernel, &walk, areas, G_N_ELEMENTS(areas));

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
