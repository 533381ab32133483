// SPDX-License-Identifier: BSD-2-Clause
/*
 * The counters of an engine's clients, beside its session: who holds which, what it counts and of whom. After hwpmc(4):
 * a counter is allocated in one of four modes, attached to tasks in two of them, started, read and stopped, by its
 * owner; what its owner leaves behind is released. Main thread only.
 */
#ifndef VPROF_SAMPLE_COUNTER_TABLE_H
#define VPROF_SAMPLE_COUNTER_TABLE_H

#include "sample/client_counter.h"

#define COUNTERS_MAX 32u

struct counter_table;

/* Guest and session stay the caller's and outlive the table. */
struct counter_table *counter_table_new(struct session *session);
void counter_table_free(struct counter_table *table);

/*
 * Numbers are 0..COUNTERS_MAX-1. Errors of all: SESSION_ERROR_STATE, _RANGE (no such number), _DENIED (somebody else's,
 * with his pid), _BUSY (none is free, it is running); COUNTER_ERROR; GUEST_ERROR.
 */
bool counter_allocate(struct counter_table *table, const struct counter_owner *owner,
                      const struct counter_request *request, unsigned *number, GError **error);
bool counter_release(struct counter_table *table, const void *key, unsigned number, GError **error);
/* Everything that this owner has. */
void counter_release_all(struct counter_table *table, const void *key);

bool counter_start(struct counter_table *table, const void *key, unsigned number, GError **error);
bool counter_stop(struct counter_table *table, const void *key, unsigned number, GError **error);
/* Of an exact counting counter that does not run: what counts up from now on, on vCPU 0. The others start from 0. */
bool counter_write(struct counter_table *table, const void *key, unsigned number, uint64_t value, GError **error);
/* Of a counter with samples that does not run. */
bool counter_set_rate(struct counter_table *table, const void *key, unsigned number, const struct counter_rate *rate,
                      GError **error);
bool counter_attach(struct counter_table *table, const void *key, unsigned number, const struct task_target *target,
                    GError **error);
bool counter_detach(struct counter_table *table, const void *key, unsigned number, const struct task_target *target,
                    GError **error);

/* By whoever administers the engine: a counter that nobody holds is not given out until it is enabled again. */
bool counter_disable(struct counter_table *table, unsigned number, GError **error);
bool counter_enable(struct counter_table *table, unsigned number, GError **error);

/* The owner's, of one that was started: one for each vCPU, up to this moment. */
bool counter_read(struct counter_table *table, const void *key, unsigned number, struct counter_value *values,
                  GError **error);

struct counter_info {
	enum counter_state state;
	/* The rest with ALLOCATED, RUNNING, STOPPED; valid until the next call. */
	struct counter_owner owner;
	const struct counter_request *request;
	const struct task_targets *targets;
};
/* number < COUNTERS_MAX. */
void counter_info_get(const struct counter_table *table, unsigned number, struct counter_info *info);

/* Of a counter with a sampling mode, to be read as a session's: the attr, the events' ids, a ring for each vCPU. */
bool counter_sampling_check(const struct counter_table *table, const void *key, unsigned number, GError **error);
void counter_attr(const struct counter_table *table, unsigned number, struct perf_event_attr *attr);
uint64_t counter_event_id(unsigned number, unsigned vcpu);
struct ring *counter_ring(const struct counter_table *table, unsigned number, unsigned vcpu);

#endif
