// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a counter counts of tasks, in a vCPU's ring: a sample at each switch away from a counted task, and a
 * PERF_RECORD_READ when the task has ended (vprof/recording.h), with the records that name the task. After
 * PMC_F_LOG_PROCCSW and PMC_F_LOG_PROCEXIT of hwpmc(4). The vCPU's thread only, except as noted.
 */
#ifndef VPROF_SAMPLE_COUNTING_LOG_H
#define VPROF_SAMPLE_COUNTING_LOG_H

#include "counter/counter.h"
#include "guest/task_match.h"
#include "stream/sample_stream.h"
#include "stream/statistics.h"

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

/* [a] atomic: stored by the vCPU's thread, loaded by any. */
struct counting_log {
	const struct os_kernel *kernel;
	struct task_totals *totals;
	unsigned vcpu;
	uint64_t event_id;
	bool stalls; /* it does not count while the ring is nearly full; set after counting_log_init */
	struct sample_stream stream;
	struct task task;                  /* that is counted, or that a stall leaves out; address 0: not known */
	_Atomic uint64_t stalled_since;    /* [a] CLOCK_MONOTONIC; 0: it counts, or the task is not to be counted */
	struct statistics_live statistics; /* [a] since counting_log_init; `sample`: slices */
};

/* `kernel`, `ring`, `totals` and `claims` are borrowed; the last two are shared with the counter's other vCPUs. */
void counting_log_init(struct counting_log *log, const struct os_kernel *kernel, unsigned vcpu, uint64_t event_id,
                       struct ring *ring, struct task_totals *totals, struct task_claims *claims);

/*
 * The vCPU begins to run `task`, which is to be counted; NULL: not known. False when it stalls: the caller counts
 * nothing until the next switch, and calls counting_log_passed then.
 */
bool counting_log_entered(struct counting_log *log, const struct task_view *view, const struct task *task);
/* It leaves that task, after it has counted `slice` of it. `task`: as it is now; NULL: not known. */
void counting_log_left(struct counting_log *log, const struct task_view *view, const struct task *task,
                       const struct counter_reading *slice);
/* It leaves a task that was not counted; does nothing unless a stall was the reason. */
void counting_log_passed(struct counting_log *log, const struct task_view *view, const struct task *task);
/* The counter is stopped. `slice`: what it has counted of the task that runs; NULL: that is not counted. */
void counting_log_end(struct counting_log *log, const struct counter_reading *slice);

/* Whether the task that runs is left out by a stall; any thread. */
bool counting_log_is_stalled(const struct counting_log *log);
/* Any thread. */
void counting_log_statistics_read(const struct counting_log *log, struct session_statistics *out);

#endif
