// SPDX-License-Identifier: BSD-2-Clause
/*
 * The per-CPU areas of a Linux guest, and what the kernel keeps there and in its tasks of a vCPU's stacks and page
 * tables: what samples need where the registers that would tell are not known.
 */
#ifndef VPROF_LINUX_CPU_AREA_H
#define VPROF_LINUX_CPU_AREA_H

#include "guest/os.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"
#include "linux/task.h"

/* Addresses and offsets; per-CPU ones are as in the image: relative to the area. */
struct cpu_area_layout {
	uint64_t offsets;             /* __per_cpu_offset: the area of each processor */
	uint64_t this_cpu_off;        /* per-CPU: the same once more */
	uint64_t current_task;        /* per-CPU */
	uint64_t apic_id;             /* per-CPU: x86_cpu_to_apicid */
	uint32_t apic_id_bytes;       /* 2 up to 6.6, then 4 */
	uint64_t interrupt_in_use;    /* per-CPU, a byte: hardirq_stack_inuse; 0: not found */
	uint64_t entry_stack;         /* per-CPU: the stack pointer in entries from user space; 0: not found */
	uint64_t direct_map;          /* where page_offset_base is; 0: the kernel has none */
	uint32_t task_stack, task_mm; /* in task_struct */
	uint32_t mm_pgd;              /* in mm_struct */
};

/* `tasks`: its layout. Errors: TASK_ERROR, TYPES_ERROR. */
bool cpu_area_layout_load(const struct symtab *symtab, const struct types *types, const struct task_layout *tasks,
                          struct cpu_area_layout *layout, GError **error);

/*
 * Reads the areas of the processors that the kernel knows, at most `n_max`; returns how many. An area must name itself.
 * `walk`: in any address space, with the kernel's part.
 */
size_t cpu_areas_read(const struct cpu_area_layout *layout, struct page_walk *walk, struct os_area *areas,
                      size_t n_max);

/* Where the kernel has all physical memory mapped: what is to be subtracted from mm_struct.pgd for a process's root. */
uint64_t cpu_area_direct_map(const struct cpu_area_layout *layout, struct page_walk *walk);

#endif
