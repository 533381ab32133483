// SPDX-License-Identifier: BSD-2-Clause
/* Whether a guest's task is one of those asked for: by process, by name, by page tables. */
#ifndef VPROF_GUEST_TASK_MATCH_H
#define VPROF_GUEST_TASK_MATCH_H

#include "guest/task.h"

#define TASK_TARGETS_MAX 8u
#define TASK_GLOB_BYTES 64u
#define TASK_GENERATIONS_MAX 32u /* of ancestors that are looked at */

enum task_target_kind { TASK_TARGET_PID, TASK_TARGET_COMM, TASK_TARGET_CR3 };

struct task_target {
	enum task_target_kind kind;
	uint32_t pid;               /* PID: of the process, all its threads are meant */
	char comm[TASK_GLOB_BYTES]; /* COMM: the thread's name, in which * and ? stand for any characters, any one */
	uint64_t cr3;               /* CR3: address of the top-level page table; what else CR3 holds is not compared */
};

struct task_targets {
	size_t n;
	struct task_target targets[TASK_TARGETS_MAX];
	bool descendants; /* and what a task that is meant has made, and that */
};

bool task_target_equal(const struct task_target *a, const struct task_target *b);

/*
 * Tasks that were found to be meant: they stay it, whatever name they take and whether or not their ancestors live. Of
 * fixed size; one that is forgotten is looked up anew. All zero at first.
 */
#define TASK_FAMILY_MEMBERS 256u /* a power of two */
struct task_family {
	struct {
		uint64_t address, start_time;
	} members[TASK_FAMILY_MEMBERS];
};

/* What it takes to look at a vCPU's tasks. */
struct task_view {
	const struct task_layout *layout;
	struct page_walk *walk; /* as task_read has left it */
	const struct guest_regs *regs;
};

/*
 * `task`: of the vCPU of this view; NULL when it could not be read, and only CR3 can tell. With descendants, a task
 * is not found if all its ancestors ended before it was first seen. Neither lock nor allocation.
 */
bool task_targets_match(const struct task_targets *targets, struct task_family *family, const struct task_view *view,
                        const struct task *task);

#endif
