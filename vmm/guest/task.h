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

#include "guest/guest.h"
#include "lib/symbol/image.h"

#define TASK_ERROR task_error_quark()
GQuark task_error_quark(void);
enum task_error {
	TASK_ERROR_NONE,  /* no Linux kernel, or one without per-CPU areas or symbols */
	TASK_ERROR_TYPES, /* neither BTF nor debug information says where things are */
};

#define TASK_COMM_BYTES 16u /* TASK_COMM_LEN */

/* Where things are. Per-CPU addresses are as the image has them: relative to the GS base. */
struct task_layout {
	uint64_t this_cpu_off;                /* per-CPU */
	uint64_t current_task;                /* per-CPU */
	uint32_t pid, tgid, comm, start_time; /* in task_struct */
};

/* Errors: TASK_ERROR, BTF_ERROR, SYMTAB_ERROR. Takes some 100 ms for a kernel of a distribution. */
bool task_layout_load(const struct image *image, struct task_layout *layout, GError **error);

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
	uint32_t pid, tid;          /* in Linux' inner words: tgid and pid; 0 for the idle tasks */
	char comm[TASK_COMM_BYTES]; /* NUL-terminated, control characters replaced */
};

/*
 * The task that the vCPU with these registers runs. False when that cannot be told: before the kernel has set up its
 * per-CPU areas, or when its memory says what cannot be. Seven reads of guest memory and the page walks for them; no
 * lock, no allocation.
 */
bool task_read(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
               const struct guest_regs *regs, struct task *task);

/*
 * The tasks whose name has been said: of fixed size, the oldest of a bucket makes room for a new one. All zero at
 * first.
 */
#define TASK_CACHE_BUCKETS 64u
#define TASK_CACHE_WAYS 4u
struct task_cache {
	struct task tasks[TASK_CACHE_BUCKETS][TASK_CACHE_WAYS]; /* the newest first; free with address 0 */
};

/* Whether exactly this task, by this name, is in the cache. */
bool task_cache_has(const struct task_cache *cache, const struct task *task);
/* Puts it there, in place of itself by another name if it was. */
void task_cache_put(struct task_cache *cache, const struct task *task);

#endif
