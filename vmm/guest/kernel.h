// SPDX-License-Identifier: BSD-2-Clause
/* What can be read in the memory of a Linux guest, as its kernel image says where things are. */
#ifndef VPROF_GUEST_KERNEL_H
#define VPROF_GUEST_KERNEL_H

#include "guest/cgroup.h"
#include "guest/module.h"
#include "guest/task.h"
#include "guest/vma.h"

struct kernel_layout {
	bool has_tasks, has_mappings, has_cgroups; /* neither mappings nor cgroups without tasks */
	bool has_modules;
	struct task_layout tasks;
	struct vma_layout mappings;
	struct cgroup_layout cgroups;
	struct module_layout modules;
	gva_t switch_to;   /* __switch_to, which every context switch goes through; 0: not found */
	gva_t page_tables; /* init_top_pgt, the top-level page table of no process, which stays; 0: not found */
	/* Per-CPU, relative to the GS base: where the last word of the CPU's interrupt stack is told; 0: not found. */
	gva_t interrupt_stack;
	/* Sentences about what is missing, or NULL. */
	char *tasks_why;
	char *mappings_why; /* only where tasks are not missing */
	char *cgroups_why;  /* the same */
	char *modules_why;  /* the same */
};

/* Takes some 100 ms for a kernel of a distribution. By kernel_layout_free. */
struct kernel_layout *kernel_layout_load(const struct image *image);
/* That of a guest of which nothing can be read, for that reason. */
struct kernel_layout *kernel_layout_none(const char *why);
void kernel_layout_free(struct kernel_layout *layout);

#endif
