// SPDX-License-Identifier: BSD-2-Clause
/* The share of one vCPU in a counter: of the whole guest, or while certain tasks run. */
#ifndef VPROF_SAMPLE_COUNTING_H
#define VPROF_SAMPLE_COUNTING_H

#include <stdatomic.h>

#include "guest/task_match.h"
#include "sample/counting_log.h"
#include "sample/session.h"

/* [I] immutable after counting_init, [v] the vCPU's thread only, [a] atomic: stored by that thread, loaded by any. */
struct counting {
	struct vcpu_watcher watcher;        /* [I] first */
	struct session *session;            /* [I] */
	unsigned vcpu;                      /* [I] */
	struct counter_meter *meter;        /* [v] NULL: stopped */
	const struct task_targets *targets; /* [v] while there is a meter; NULL: the whole guest */
	struct task_family family;          /* [v] */
	bool counts;                        /* [v] the running task is counted */
	struct counting_log *log;           /* [I] NULL: switches are not recorded */
	struct counter_reading last;        /* [v] */
	struct counter_reading since;       /* [v] with a log: the sums when the vCPU began to run the counted task */
	struct counting_sums {
		_Atomic uint64_t value, running_ns, enabled_ns;
	} sums; /* [a] since counting_init */
};

/* `log` stays the caller's; NULL. */
void counting_init(struct counting *counting, struct session *session, unsigned vcpu, struct counting_log *log);

/*
 * The functions below run on the vCPU's thread, outside the guest. `targets` stays the caller's until counting_stop.
 * With targets, counting begins at the first counting_switched.
 */
bool counting_start(struct counting *counting, const struct counter_event *event, const struct task_targets *targets,
                    GError **error);
void counting_stop(struct counting *counting);
/* Other targets from the next counting_switched on, until counting_stop. Only if it had some before. */
void counting_retarget(struct counting *counting, const struct task_targets *targets);
/*
 * As counter_meter_descriptor, with what was counted before the descriptor's counter began in *before. -1: it is
 * stopped, too.
 */
int counting_descriptor(struct counting *counting, uint64_t *before);
/* Updates the sums. */
void counting_update(struct counting *counting);
/* The vCPU switches from one task to another (NULL: not known). */
void counting_switched(struct counting *counting, const struct task_view *view, const struct task *previous,
                       const struct task *next);

#endif
