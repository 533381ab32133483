// SPDX-License-Identifier: BSD-2-Clause
/* Where a Linux guest has what can be read in its memory, as its kernel image tells. */
#ifndef VPROF_LINUX_KERNEL_H
#define VPROF_LINUX_KERNEL_H

#include "linux/cgroup.h"
#include "linux/cpu_area.h"
#include "linux/inode_find.h"
#include "linux/lock.h"
#include "linux/module.h"
#include "linux/page_cache.h"
#include "linux/task.h"
#include "linux/task_list.h"
#include "linux/vma.h"

struct kernel_layout {
	bool has_tasks, has_mappings, has_cgroups; /* neither mappings nor cgroups without tasks */
	bool has_modules;
	bool has_areas;
	bool has_list;
	bool has_page_cache;
	bool has_locks;
	bool has_inodes; /* not without the page cache */
	struct task_layout tasks;
	struct vma_layout mappings;
	struct cgroup_layout cgroups;
	struct module_layout modules;
	struct cpu_area_layout areas;
	struct task_list_layout list;
	struct page_cache_layout page_cache;
	struct lock_layout locks;
	struct inode_layout inodes;
	gva_t switch_to; /* __switch_to, which every context switch goes through; 0: not found */
	gva_t wake_up;   /* try_to_wake_up, which ends every wait; 0: not found */
	/* Per-CPU, relative to the area: __preempt_count, which tells interrupts from tasks; 0: not found. */
	gva_t preempt_count;
	uint32_t task_preempt_count; /* where that is in struct thread_info, which begins a task_struct; 0: not found */
	gva_t page_tables;           /* the top-level page table of the kernel itself, which never goes; 0: not found */
	uint32_t entry_record;       /* where struct pt_regs has a frame record; 0: not known */
	/* Per-CPU: where the address of the last word of the interrupt stack is stored; 0: not found. */
	gva_t interrupt_stack;
	/* Sentences about what is missing, or NULL. */
	char *tasks_why;
	char *mappings_why; /* only where tasks are not missing */
	char *cgroups_why;  /* the same */
	char *modules_why;  /* the same */
	char *list_why;     /* the same */
};

/* Takes some 100 ms for the kernel of a distribution. Free with kernel_layout_free. */
struct kernel_layout *kernel_layout_load(const struct image *image);
/* The layout of a guest where nothing can be read, for the reason `why`. */
struct kernel_layout *kernel_layout_none(const char *why);
void kernel_layout_free(struct kernel_layout *layout);

struct orc;
struct call_sites;

/* All that sampling needs of a kernel and that takes long to make of its image. */
struct kernel_parts {
	struct kernel_layout *layout;
	struct orc *orc;          /* NULL: see orc_why; or its processor has none */
	GError *orc_why;          /* NULL; ORC_ERROR */
	struct call_sites *sites; /* NULL: not asked for, or not to be had */
};

/*
 * `running`: the kernel as the guest's memory has it, with the calls that Linux has patched at boot, to find call sites
 * in; NULL: they are not needed. Any thread. Free with kernel_parts_free; NULL is fine.
 */
struct kernel_parts *kernel_parts_load(const struct image *image, const struct image *running);
void kernel_parts_free(struct kernel_parts *parts);

/* For struct processor_kernel: a symbol, and a per-CPU variable that from 6.2 to 6.14 is a member of pcpu_hot. */
gva_t kernel_symbol(const struct symtab *symtab, const char *name);
gva_t kernel_hot_symbol(const struct symtab *symtab, const struct types *types, const char *name, const char *member);

/*
 * Walks by the kernel's own page tables, which stay: those of a vCPU lead there, or those of the kernel beside them.
 * `page_tables`: of the layout. False where they do not, as those of a process that has ended may.
 */
bool kernel_tables_open(gva_t page_tables, struct guest *guest, const struct guest_regs *regs, struct page_walk *walk);

#endif
