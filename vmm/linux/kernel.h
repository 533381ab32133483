// SPDX-License-Identifier: BSD-2-Clause
/* Where a Linux guest has what can be read in its memory, as its kernel image tells. */
#ifndef VPROF_LINUX_KERNEL_H
#define VPROF_LINUX_KERNEL_H

#include "guest/os.h"
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
	struct os_kernel os;                       /* first */
	char *texts[OS_PARTS];                     /* those of os.why that are not static */
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
	gva_t set_comm;  /* __set_task_comm, which names every task, at exec and by prctl; 0: not found */
	gva_t wake_up;   /* try_to_wake_up, which ends every wait; 0: not found */
	/* Per-CPU, relative to the area: __preempt_count, which tells interrupts from tasks; 0: not found. */
	gva_t preempt_count;
	uint32_t task_preempt_count; /* where that is in struct thread_info, which begins a task_struct; 0: not found */
};

/* Takes some 100 ms for the kernel of a distribution. Free with kernel_layout_free. */
struct kernel_layout *kernel_layout_load(const struct image *image);
/* The layout of a guest where nothing can be read, for the reason `why`. */
struct kernel_layout *kernel_layout_none(const char *why);
void kernel_layout_free(struct kernel_layout *layout);

/* Of a kernel of Linux. */
static inline const struct kernel_layout *layout_of(const struct os_kernel *kernel)
{
	return (const struct kernel_layout *)kernel;
}

/* Fills in what the layouts give of struct os_kernel (os_linux.c): the last step of making one. */
void kernel_layout_settle(struct kernel_layout *layout);
/* struct os_calls: read */
bool linux_call_read(struct guest *guest, const struct guest_regs *regs, const struct guest_gprs *gprs,
                     struct os_call *call);

/* For struct linux_processor: a symbol, and a per-CPU variable that from 6.2 to 6.14 is a member of pcpu_hot. */
gva_t kernel_symbol(const struct symtab *symtab, const char *name);
gva_t kernel_hot_symbol(const struct symtab *symtab, const struct types *types, const char *name, const char *member);

#endif
