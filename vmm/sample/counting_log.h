// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a counter counts of tasks, in a vCPU's ring: a sample at each switch away from a counted task, and a
 * PERF_RECORD_READ when the task has ended (vprof/recording.h), with the records that name the task. After
 * PMC_F_LOG_PROCCSW and PMC_F_LOG_PROCEXIT of hwpmc(4). The vCPU's thread only.
 */
#ifndef VPROF_SAMPLE_COUNTING_LOG_H
#define VPROF_SAMPLE_COUNTING_LOG_H

#include "counter/counter.h"
#include "guest/task_match.h"
#include "stream/sample_stream.h"

/*
 * What tasks have counted so far, on any of the vCPUs. Of fixed size: a task that finds no slot has no total at its
 * end. Starts as zero.
 */
#define TASK_TOTALS_BUCKETS 256u
#define TASK_TOTALS_WAYS 16u
struct task_totals {
	struct task_total {
		_Atomic uint64_t task; /* task_hash; 0: free */
		_Atomic uint64_t value, enabled_ns, running_ns;
	} slots[TASK_TOTALS_BUCKETS][TASK_TOTALS_WAYS];
};

struct counting_log {
	const struct os_kernel *kernel;
	struct task_totals *totals;
	unsigned vcpu;
	uint64_t event_id;
	struct sample_stream stream;
	struct task task; /* that is counted; address 0: not known */
};

/* `kernel`, `ring`, `totals` and `claims` are borrowed; the last two are shared with the counter's other vCPUs. */
void counting_log_init(struct counting_log *log, const struct os_kernel *kernel, unsigned vcpu, uint64_t event_id,
                       struct ring *ring, struct task_totals *totals, struct task_claims *claims);

/* The vCPU begins to run `task`, which is counted; NULL: not known. */
void counting_log_entered(struct counting_log *log, const struct task_view *view, const struct task *task);
/* It leaves that task, after it has counted `slice` of it. `task`: as it is now; NULL: not known. */
void counting_log_left(struct counting_log *log, const struct task_view *view, const struct task *task,
                       const struct counter_reading *slice);
/* The counter is stopped. `slice`: what it has counted of the task that runs; NULL: that is not counted. */
void counting_log_end(struct counting_log *log, const struct counter_reading *slice);

#endif
