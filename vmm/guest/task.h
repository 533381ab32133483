// SPDX-License-Identifier: BSD-2-Clause
/* The tasks of a guest, of any system (guest/os.h): what they are, and what they do. */
#ifndef VPROF_GUEST_TASK_H
#define VPROF_GUEST_TASK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest/registers.h"

#define TASK_COMM_BYTES 16u

/* What is known of one vCPU; starts as zero. */
struct task_cpu {
	uint64_t area; /* as the registers told it when they last did (guest_regs_area); 0 before */
};

/*
 * Call at every exit: in user mode, the registers may not tell. The tasks of a vCPU are unknown until it was seen in
 * the kernel.
 */
static inline void task_cpu_note(struct task_cpu *cpu, const struct guest_regs *regs)
{
	guest_regs_area(regs, &cpu->area);
}

struct task {
	uint64_t address;           /* of the system's own record of it */
	uint64_t start_time;        /* tells it from a later task with the same record */
	uint64_t mm;                /* its address space, as the system names it; 0: a kernel thread */
	uint32_t pid, tid;          /* of its process and its own; 0 for the idle tasks */
	char comm[TASK_COMM_BYTES]; /* NUL-terminated, control characters replaced */
};

struct task_parent {
	uint32_t pid, tid;
};
/* A task and what it does. */
struct listed_task {
	struct task task;
	char state;                 /* as ps(1) has it: R S D T t X Z P I */
	char next_state;            /* of one that is leaving its processor: what it will be in */
	bool kernel_thread;         /* it has no user space */
	bool on_cpu;                /* it runs, or is about to: its stack pointer is an old one */
	uint32_t cpu;               /* where it runs, or ran last; the kernel's number */
	uint64_t cpu_ns;            /* that it has run for, up to the last tick */
	uint64_t queued_ns;         /* that it has waited for a processor, ready to run; 0: not counted */
	uint64_t switches;          /* how often it has switched away: what stands for as long as it sleeps */
	uint64_t stack_pointer;     /* saved when it did */
	uint64_t frame_pointer, pc; /* arm64: these, too */
};

#define TASK_LIST_MAX 65536u /* twice what Linux allows by default */
enum task_list_end {
	TASK_LIST_WHOLE,
	TASK_LIST_BROKEN, /* a link leads to no task, or back to one: the guest has changed the list, or lies */
	TASK_LIST_LIMIT,  /* there are more than TASK_LIST_MAX */
};

struct task_list {
	GArray *tasks; /* of struct listed_task, a process before its threads */
	enum task_list_end end;
};

static inline void task_list_clear(struct task_list *list)
{
	g_clear_pointer(&list->tasks, g_array_unref);
}

#endif
