// SPDX-License-Identifier: BSD-2-Clause
/*
 * The waits of tasks that have begun and not ended, by task. The vCPU that switches away from a task begins its wait,
 * another may say who ends it, and the one that switches to the task ends it. The guest does the last only after the
 * first is done (on_cpu of its task_struct), as one task that ran on two vCPUs would have one stack for both.
 */
#ifndef VPROF_SAMPLE_WAIT_TABLE_H
#define VPROF_SAMPLE_WAIT_TABLE_H

#include <vprof/recording.h>

#include "guest/os.h"
#include "guest/task.h"

/* A wait that has begun. */
struct wait {
	uint64_t start_time; /* of its task */
	uint64_t since_ns;
	uint64_t queued_ns; /* of its task then */
	char state;
	struct os_lock lock;
	struct task owner; /* of the lock; address 0: not known */
};

/* What made its task ready to run. */
struct wake {
	uint64_t time_ns;
	enum vprof_waker kind;
	unsigned vcpu;
	struct task task; /* that did it, or was interrupted by it; address 0: not known */
};

struct wait_table;

struct wait_table *wait_table_new(void);
void wait_table_free(struct wait_table *table);

/* The others are for vCPU threads: no lock, no allocation. `task`: the address of its task_struct. */

/* A task that ended while it waited has left its own to the next with its task_struct. False: there is no room. */
bool wait_begin(struct wait_table *table, uint64_t task, const struct wait *wait);
/* Whether the task waits, and nothing is known of its end yet. */
bool wait_is_open(struct wait_table *table, uint64_t task);
/* The first one counts. */
void wait_woken(struct wait_table *table, uint64_t task, const struct wake *wake);
/* False: it does not wait. wake->kind is VPROF_WAKER_UNKNOWN where none is known. */
bool wait_end(struct wait_table *table, const struct task *task, struct wait *wait, struct wake *wake);

#endif
