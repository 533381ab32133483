// SPDX-License-Identifier: BSD-2-Clause
/* Matches a guest's task against targets: by process, by name, by page tables. */
#ifndef VPROF_GUEST_TASK_MATCH_H
#define VPROF_GUEST_TASK_MATCH_H

#include "guest/os.h"

#define TASK_TARGETS_MAX 8u
#define TASK_GLOB_BYTES 64u
#define TASK_GENERATIONS_MAX 32u /* of ancestors that are looked at */

enum task_target_kind { TASK_TARGET_PID, TASK_TARGET_COMM, TASK_TARGET_TABLES };

struct task_target {
	enum task_target_kind kind;
	uint32_t pid;               /* PID: of a process, with all its threads */
	char comm[TASK_GLOB_BYTES]; /* COMM: the name of the thread; * stands for any characters, ? for one */
	uint64_t tables;            /* TABLES: the address of the top-level one; bits that are no address are ignored */
};

struct task_targets {
	size_t n;
	struct task_target targets[TASK_TARGETS_MAX];
	bool descendants; /* also the descendants of a matching task */
};

bool task_target_equal(const struct task_target *a, const struct task_target *b);

/*
 * Tasks that matched: they stay matched, under any name and with or without living ancestors. Of fixed size; a task
 * that is pushed out is looked up again. Starts as zero.
 */
#define TASK_FAMILY_MEMBERS 256u /* a power of two */
struct task_family {
	struct {
		uint64_t address, start_time;
	} members[TASK_FAMILY_MEMBERS];
};

/* What is needed to read the tasks of a vCPU. */
struct task_view {
	const struct os_kernel *kernel; /* with tasks */
	struct page_walk *walk;         /* as its `tasks->read` has left it */
	const struct guest_regs *regs;
};

/*
 * `task`: the task of the vCPU; NULL when it could not be read, and only page tables can match. With descendants, a
 * task does not match if all its ancestors ended before it was first seen. No lock, no allocation.
 */
bool task_targets_match(const struct task_targets *targets, struct task_family *family, const struct task_view *view,
                        const struct task *task);

#endif
