// SPDX-License-Identifier: BSD-2-Clause
/*
 * What stands in a vCPU's ring about the tasks that its samples are of, ahead of the first sample that needs it:
 * PERF_RECORD_FORK and PERF_RECORD_COMM when a task is seen for the first time, COMM again by a new name, and
 * PERF_RECORD_EXIT once it has gone. Everything is on the vCPU's thread, and as bounded as a sample: at every sample
 * one more task is looked at whether it still is there.
 */
#ifndef VPROF_SAMPLE_NAMER_H
#define VPROF_SAMPLE_NAMER_H

#include <stdatomic.h>

#include "guest/kernel.h"
#include "guest/task_cache.h"
#include "sample/announcer.h"

/*
 * Which tasks were announced by any of a session's vCPUs. One that is pushed out of its slot may be announced twice.
 * All zero at first.
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

/* Before the sample with this id goes into the ring: its task, read by `walk`. */
void namer_task(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id);

#endif
