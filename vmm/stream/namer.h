// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes tasks into a vCPU's ring before the first sample that needs them: PERF_RECORD_FORK and PERF_RECORD_COMM for a
 * new task, COMM again after a change of name, and PERF_RECORD_EXIT once the task has ended. On the vCPU's thread. The
 * cost is bounded: each sample checks one more known task for its end.
 *
 * By context switches, none is missed: a task is switched to after it was made and switched from after it has ended,
 * and what it has executed is seen at the latest when it is switched from.
 */
#ifndef VPROF_STREAM_NAMER_H
#define VPROF_STREAM_NAMER_H

#include <stdatomic.h>

#include "guest/os.h"
#include "guest/task_cache.h"
#include "stream/announcer.h"

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
	const struct os_kernel *kernel;
	struct task_claims *claims;
	struct announcer *announcer;
	struct task_cache tasks;
	bool by_switches; /* namer_entered and namer_left are called */
};

/* Everything is borrowed. */
void namer_init(struct namer *namer, const struct os_kernel *kernel, struct task_claims *claims,
                struct announcer *announcer, bool by_switches);

/* Call before the sample with this id is written, with its task, which `walk` has read. */
void namer_task(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id);

/*
 * At a context switch, with the task that the vCPU runs from now on, and with the one that it has run. The first is
 * also for a task that a sample names and the vCPU does not run.
 */
void namer_entered(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id);
void namer_left(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id);

#endif
