// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes tasks into a vCPU's ring before the first sample that needs them: PERF_RECORD_FORK and PERF_RECORD_COMM for a
 * new task, COMM again after a change of name, and PERF_RECORD_EXIT once the task has ended. On the vCPU's thread. The
 * cost is bounded: each sample checks one more known task for its end.
 */
#ifndef VPROF_SAMPLE_NAMER_H
#define VPROF_SAMPLE_NAMER_H

#include <stdatomic.h>

#include "guest/kernel.h"
#include "guest/task_cache.h"
#include "sample/announcer.h"

/*
 * The tasks that any vCPU of a session has announced. A task that lost its slot to another may be announced twice.
 * Starts as zero.
 */
#define TASK_CLAIMS 4096u
struct task_claims {
	_Atomic uint64_t slots[TASK_CLAIMS]; /* of task_hash */
};

/* The vCPU's thread only. */
struct namer {
	const struct kernel_layout *kernel;
	struct task_claims *claims;
	struct announcer *announcer;
	struct task_cache tasks;
};

/* Everything is borrowed. */
void namer_init(struct namer *namer, const struct kernel_layout *kernel, struct task_claims *claims,
                struct announcer *announcer);

/* Call before the sample with this id is written, with its task, which `walk` has read. */
void namer_task(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id);

#endif
