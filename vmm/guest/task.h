// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which task of a Linux guest a vCPU runs, read in its memory; nothing in the guest helps.
 *
 * The per-CPU area of the CPU that a vCPU is has its address in the GS base while the kernel runs. There the kernel
 * keeps `current`: in the per-CPU variable current_task, from 6.2 to 6.14 in pcpu_hot.current_task. Every per-CPU area
 * also holds its own address (this_cpu_off), so that a wrong area, or a right one in the wrong page tables, is noticed:
 * a task is either right or not known.
 */
#ifndef VPROF_GUEST_TASK_H
#define VPROF_GUEST_TASK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest/page_walk.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"

#define TASK_ERROR task_error_quark()
GQuark task_error_quark(void);
enum task_error {
	TASK_ERROR_NONE, /* no Linux kernel, or one without per-CPU areas or symbols */
};

#define TASK_COMM_BYTES 16u /* TASK_COMM_LEN */

/* Where things are. Per-CPU addresses are as the image has them: relative to the GS base. */
struct task_layout {
	uint64_t this_cpu_off;                /* per-CPU */
	uint64_t current_task;                /* per-CPU */
	uint32_t pid, tgid, comm, start_time; /* in task_struct */
	uint32_t exit_state, real_parent, mm; /* there, too */
};

/* Errors: TASK_ERROR, TYPES_ERROR. */
bool task_layout_load(const struct image *image, const struct symtab *symtab, const struct types *types,
                      struct task_layout *layout, GError **error);

/* What is known of one vCPU; all zero at first. */
struct task_cpu {
	uint64_t area; /* the GS base when the vCPU was last seen in the kernel; 0 before */
};

/*
 * To be told of every exit: a vCPU in user mode has user space's GS base. One that has not been seen in the kernel yet
 * has no known tasks.
 */
static inline void task_cpu_note(struct task_cpu *cpu, const struct guest_regs *regs)
{
	/* The kernel's are in the upper half. Right behind an entry, before swapgs, it is still user space's. */
	if (regs->cpl == 0 && regs->gs_base >> 63)
		cpu->area = regs->gs_base;
}

struct task {
	uint64_t address;           /* of its task_struct */
	uint64_t start_time;        /* tells it from another that has its task_struct later */
	uint64_t mm;                /* its address space (mm_struct); 0: a kernel thread */
	uint32_t pid, tid;          /* in Linux' inner words: tgid and pid; 0 for the idle tasks */
	char comm[TASK_COMM_BYTES]; /* NUL-terminated, control characters replaced */
};

/*
 * The task that the vCPU with these registers runs. False when that cannot be told: before the kernel has set up its
 * per-CPU areas, or when its memory says what cannot be. Eight reads of guest memory and the page walks for them; no
 * lock, no allocation. `walk` is left in the task's address space, with the kernel's part.
 */
bool task_read(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
               const struct guest_regs *regs, struct page_walk *walk, struct task *task);

/* The same of the task with its task_struct at `address`. */
bool task_read_at(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
                  const struct guest_regs *regs, uint64_t address, struct page_walk *walk, struct task *task);
/* The task that the kernel would tell of this one's end: its parent, or who has it since that ended. */
bool task_read_parent(const struct task_layout *layout, struct page_walk *walk, const struct task *task,
                      struct task *parent);

struct task_parent {
	uint32_t pid, tid;
};
/* The one that the kernel would tell of the task's end. */
bool task_parent_read(const struct task_layout *layout, struct page_walk *walk, const struct task *task,
                      struct task_parent *parent);

/* Whether it has exited, or its task_struct is another's by now. `walk`: of any task. */
bool task_has_ended(const struct task_layout *layout, struct page_walk *walk, const struct task *task);

#endif
