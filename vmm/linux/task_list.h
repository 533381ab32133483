// SPDX-License-Identifier: BSD-2-Clause
/*
 * All tasks of a Linux guest, read in its memory while it goes on: the kernel's list of processes, from init_task on,
 * and the threads of each. The lists are not trusted: a task is taken once, and what does not look like one ends its
 * list.
 */
#ifndef VPROF_LINUX_TASK_LIST_H
#define VPROF_LINUX_TASK_LIST_H

#include "guest/frame.h"
#include "guest/page_walk.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"
#include "linux/task.h"

#define TASK_STRUCT_BYTES_MAX 15360u /* that are read of a task_struct; kernels of distributions have 10 to 14 KiB */

#define TASK_LOCKS_MAX 64u
#define TASK_SPANS_MAX 8u

/* Code from `begin` on, up to `end`. */
struct task_code {
	uint64_t begin, end;
};

struct task_list_layout {
	uint64_t init_task;                     /* address */
	uint64_t fork_return;                   /* address of ret_from_fork_asm; 0: not found */
	struct task_code locks[TASK_LOCKS_MAX]; /* what of the following is a lock's, or waits for a device */
	unsigned n_locks;
	uint64_t waits[4];                   /* code that only waits: from waits[0] to waits[1], and from [2] to [3] */
	uint32_t tasks, signal, thread_node; /* in task_struct, as all that follow but thread_head */
	uint32_t thread_head;                /* in signal_struct */
	struct types_number state, on_cpu;   /* unsigned long before 5.14; u8 since 7.2 */
	uint32_t flags, cpu;
	uint32_t runtime;                /* se.sum_exec_runtime */
	uint32_t queued;                 /* sched_info.run_delay; 0: the kernel does not have it */
	uint32_t voluntary, involuntary; /* nvcsw, nivcsw: how often it has switched away */
	uint32_t stack_pointer;          /* thread.sp; on arm64 thread.cpu_context.sp, with the next two */
	uint32_t frame_pointer, pc;      /* 0: the stack has them */
	uint32_t bytes;                  /* of a task_struct, up to the last of its members here and in task_layout */
	unsigned n_spans;                /* these parts of them have all members; 0: they are read as a whole */
	struct {
		uint32_t at, bytes;
	} spans[TASK_SPANS_MAX];
};

/* `tasks`: its layout. Errors: TASK_ERROR, TYPES_ERROR_MEMBER. */
bool task_list_layout_load(const struct symtab *symtab, const struct types *types, const struct task_layout *tasks,
                           struct task_list_layout *layout, GError **error);

/* Reads the task with its task_struct at `address`; false when there is none. */
bool listed_task_read(const struct task_list_layout *layout, const struct task_layout *tasks, struct page_walk *walk,
                      uint64_t address, struct listed_task *task);

/* The frame in which a task that is not on a processor will go on. False: its stack cannot be read, or is none. */
bool listed_task_frame(const struct task_list_layout *layout, struct page_walk *walk, const struct listed_task *task,
                       struct frame *frame);

/* Whether a task that was not on a processor has not been on one since, and its stack is what it was. */
bool listed_task_sleeps_on(const struct task_list_layout *layout, const struct task_layout *tasks,
                           struct page_walk *walk, const struct listed_task *task);

/*
 * Reads the tasks, without the idle ones of the processors. `walk`: in any address space, with the kernel's part. Takes
 * one read of guest memory for each task. Free with task_list_clear.
 */
void task_list_read(const struct task_list_layout *layout, const struct task_layout *tasks, struct page_walk *walk,
                    struct task_list *list);

/*
 * Where a task with this call chain waits, as get_wchan of kernel/sched/core.c has it: the first frame outside the
 * scheduler; 0: none.
 */
uint64_t task_wait_channel(const struct task_list_layout *layout, const uint64_t *chain, size_t n);

/* Whether the code at `ip` is the scheduler's, or a lock's. */
bool task_only_waits(const struct task_list_layout *layout, uint64_t ip);
/* Whether it is the scheduler's, which says nothing of what is waited for. */
bool task_only_schedules(const struct task_list_layout *layout, uint64_t ip);

#endif
