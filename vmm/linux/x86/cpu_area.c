// SPDX-License-Identifier: BSD-2-Clause
#include "linux/cpu_area.h"

/* __PAGE_OFFSET_BASE_L4 and _L5 of asm/page_64_types.h: where KASLR does not move it. */
#define DIRECT_MAP_4_LEVELS UINT64_C(0xffff888000000000)
#define DIRECT_MAP_5_LEVELS UINT64_C(0xff11000000000000)

/* From 6.2 to 6.14 it is a member of pcpu_hot. */
static uint64_t in_use_find(const struct symtab *symtab, const struct types *types)
{
	uint64_t found = symtab_address(symtab, "hardirq_stack_inuse"), hot = symtab_address(symtab, "pcpu_hot");
	uint32_t offset;

	if (found == 0 && hot != 0 && types_has(types, "pcpu_hot", "hardirq_stack_inuse", 1, &offset))
		found = hot + offset;
	return found;
}

static uint64_t entry_stack_find(const struct symtab *symtab, const struct types *types)
{
	const uint64_t tss = symtab_address(symtab, "cpu_tss_rw");
	uint32_t hardware, sp0;

	return tss != 0 && types_has(types, "tss_struct", "x86_tss", TYPES_PLACE, &hardware) &&
	                       types_has(types, "x86_hw_tss", "sp0", 8, &sp0)
	               ? tss + hardware + sp0
	               : 0;
}

bool cpu_area_layout_load(const struct symtab *symtab, const struct types *types, const struct task_layout *tasks,
                          struct cpu_area_layout *layout, GError **error)
{
	const struct symbol *apic_id = symtab_find_name(symtab, "x86_cpu_to_apicid");
	struct cpu_area_layout loaded = {
		.offsets = symtab_address(symtab, "__per_cpu_offset"),
		.this_cpu_off = tasks->this_cpu_off,
		.current_task = tasks->current_task,
		.task_mm = tasks->mm,
		.interrupt_in_use = in_use_find(symtab, types),
		.entry_stack = entry_stack_find(symtab, types),
		.direct_map = symtab_address(symtab, "page_offset_base"),
	};
	const struct types_member members[] = {
		{"task_struct", "stack", 8, &loaded.task_stack},
		{"mm_struct", "pgd", 8, &loaded.mm_pgd},
	};

	if (!apic_id || loaded.offsets == 0) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE, "the kernel has no symbol %s",
		            apic_id ? "__per_cpu_offset" : "x86_cpu_to_apicid");
		return false;
	}
	if (!types_find(types, members, G_N_ELEMENTS(members), error))
		return false;
	loaded.apic_id = apic_id->address;
	/* Its size is not known, only where the next variable is; what lies between is zero. */
	loaded.apic_id_bytes = apic_id->size < sizeof(uint32_t) ? sizeof(uint16_t) : sizeof(uint32_t);
	*layout = loaded;
	return true;
}

static bool area_read(const struct cpu_area_layout *layout, struct page_walk *walk, size_t cpu, struct os_area *area)
{
	uint64_t own;

	*area = (struct os_area){0};
	return page_walk_read_kernel(walk, (gva_t){layout->offsets + cpu * sizeof(area->area)}, &area->area,
	                             sizeof(area->area)) &&
	       page_walk_read_kernel(walk, (gva_t){area->area + layout->this_cpu_off}, &own, sizeof(own)) &&
	       own == area->area &&
	       page_walk_read_kernel(walk, (gva_t){area->area + layout->apic_id}, &area->apic_id,
	                             layout->apic_id_bytes);
}

size_t cpu_areas_read(const struct cpu_area_layout *layout, struct page_walk *walk, struct os_area *areas, size_t n_max)
{
	size_t n = 0;

	while (n < n_max && area_read(layout, walk, n, &areas[n]))
		n++;
	return n;
}

uint64_t cpu_area_direct_map(const struct cpu_area_layout *layout, struct page_walk *walk)
{
	uint64_t start;

	if (layout->direct_map != 0 && page_walk_read_kernel(walk, (gva_t){layout->direct_map}, &start, sizeof(start)))
		return start;
	return walk->tables.la57 ? DIRECT_MAP_5_LEVELS : DIRECT_MAP_4_LEVELS;
}
