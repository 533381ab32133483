// SPDX-License-Identifier: BSD-2-Clause
/*
 * The task that a vCPU of a Linux guest runs, read from guest memory, without help from the guest.
 *
 * While the kernel runs, the GS base is the address of the per-CPU area, and on arm64 always TPIDR_EL1. It holds
 * `current`: in the per-CPU variable current_task, from 6.2 to 6.14 in pcpu_hot.current_task; on arm64 in __entry_task,
 * from which every entry from user space takes it (arch/arm64/kernel/entry.S). Every per-CPU area also holds its own
 * address (this_cpu_off), or is in the table of all (__per_cpu_offset), so that a wrong area, or the right one in wrong
 * page tables, is detected: a task is either right or not known.
 */
#ifndef VPROF_LINUX_TASK_H
#define VPROF_LINUX_TASK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest/page_walk.h"
#include "guest/task.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"

#define TASK_ERROR task_error_quark()
GQuark task_error_quark(void);
enum task_error {
	TASK_ERROR_NONE, /* not a Linux kernel, or one without per-CPU areas or symbols */
};

/* Offsets and addresses. Per-CPU addresses are as in the image: relative to the area. */
struct task_layout {
	uint64_t this_cpu_off;                /* per-CPU: the area's own address, where `offsets` is 0 */
	uint64_t offsets;                     /* __per_cpu_offset, the areas of all processors; 0: not needed */
	uint64_t kernel_tables;               /* the kernel's page tables, as linked; 0: not found, or not needed */
	uint64_t current_task;                /* per-CPU */
	uint32_t pid, tgid, comm, start_time; /* in task_struct */
	uint32_t exit_state, real_parent, mm; /* there, too */
	uint32_t self_exec_id;                /* there, too; 0: not found */
	uint32_t mm_pgd;                      /* in mm_struct; 0: not found */
};

/* Errors: TASK_ERROR, TYPES_ERROR. */
bool task_layout_load(const struct image *image, const struct symtab *symtab, const struct types *types,
                      struct task_layout *layout, GError **error);

/*
 * Reads the task that the vCPU with these registers runs. False when it cannot be known: before the kernel has set up
 * its per-CPU areas, or when its memory is inconsistent. Eight reads of guest memory and their page walks; no lock, no
 * allocation. `walk` ends in the address space of the task, with the kernel's part.
 */
bool task_read(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
               const struct guest_regs *regs, struct page_walk *walk, struct task *task);

/* A name at an address of the kernel, as a task would have it: cut there, control characters replaced. */
bool task_comm_read(struct page_walk *walk, gva_t at, char comm[TASK_COMM_BYTES]);

/* As task_read, for the task with its task_struct at `address`. */
bool task_read_at(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
                  const struct guest_regs *regs, uint64_t address, struct page_walk *walk, struct task *task);
/* The task at `address`, from a copy of its task_struct's first bytes, which have all members of the layout. */
bool task_decode(const struct task_layout *layout, const uint8_t *bytes, uint64_t address, struct task *task);
/* The parent of a task: the task that the kernel notifies of its end. */
bool task_read_parent(const struct task_layout *layout, struct page_walk *walk, const struct task *task,
                      struct task *parent);

/* The parent of the task. */
bool task_parent_read(const struct task_layout *layout, struct page_walk *walk, const struct task *task,
                      struct task_parent *parent);

/*
 * *walk becomes the address space of a task's process, with the kernel's part. `kernel`: in any address space, with the
 * kernel's part. False for a kernel thread, and where the process's page tables are not known: then it is that one's.
 */
bool task_walk_open(const struct task_layout *layout, const struct page_walk *kernel, const struct task *task,
                    struct page_walk *walk);

/*
 * The per-CPU area of the first processor, for reading tasks by that run on none; 0: not known. arm64 only
 * (cpu_area.h).
 */
uint64_t task_first_area(const struct task_layout *layout, struct page_walk *walk);

/*
 * A number that changes with each execve(2) of the task, and that a new task has from its parent; 0 where it is not
 * known.
 */
uint32_t task_read_execs(const struct task_layout *layout, struct page_walk *walk, const struct task *task);

/* True when the task has exited, or its task_struct belongs to another task. `walk`: of any task. */
bool task_has_ended(const struct task_layout *layout, struct page_walk *walk, const struct task *task);

#endif
