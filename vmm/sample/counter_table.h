// SPDX-License-Identifier: BSD-2-Clause
/*
 * The counters of an engine's clients, separate from its session. After hwpmc(4): a client allocates a counter in one
 * of four modes, attaches it to tasks in two of them, starts, reads and stops it. A client's counters are released when
 * it leaves. Main thread only.
 */
#ifndef VPROF_SAMPLE_COUNTER_TABLE_H
#define VPROF_SAMPLE_COUNTER_TABLE_H

#include "sample/client_counter.h"

#define COUNTERS_MAX 32u

struct counter_table;

/* The session stays the caller's and outlives the table. */
struct counter_table *counter_table_new(struct session *session);
void counter_table_free(struct counter_table *table);

/*
 * Numbers are 0..COUNTERS_MAX-1. Errors of all: SESSION_ERROR_STATE, _RANGE (no such number), _DENIED (another
 * client's; the message has its pid), _BUSY (no number is free, or the counter is running); COUNTER_ERROR; GUEST_ERROR.
 */
bool counter_allocate(struct counter_table *table, const struct counter_owner *owner,
                      const struct counter_request *request, unsigned *number, GError **error);
bool counter_release(struct counter_table *table, const void *key, unsigned number, GError **error);
/* Releases all counters of this owner. */
void counter_release_all(struct counter_table *table, const void *key);

bool counter_start(struct counter_table *table, const void *key, unsigned number, GError **error);
bool counter_stop(struct counter_table *table, const void *key, unsigned number, GError **error);
/* Resumes counters that stall, if their rings have room again. Returns whether there are running ones that may. */
bool counters_resume_stalled(struct counter_table *table);
/*
 * Sets the value of a stopped counter in an exact counting mode. It counts on from there on its first vCPU; other vCPUs
 * start from 0.
 */
bool counter_write(struct counter_table *table, const void *key, unsigned number, uint64_t value, GError **error);
/* For a stopped counter with samples. */
bool counter_set_rate(struct counter_table *table, const void *key, unsigned number, const struct counter_rate *rate,
                      GError **error);
bool counter_attach(struct counter_table *table, const void *key, unsigned number, const struct task_target *target,
                    GError **error);
bool counter_detach(struct counter_table *table, const void *key, unsigned number, const struct task_target *target,
                    GError **error);

/* For administration: a disabled counter cannot be allocated until it is enabled again. It must be free. */
bool counter_disable(struct counter_table *table, unsigned number, GError **error);
bool counter_enable(struct counter_table *table, unsigned number, GError **error);

/* Reads a counter that was started, up to this moment: one value for each vCPU. */
bool counter_read(struct counter_table *table, const void *key, unsigned number, struct counter_value *values,
                  GError **error);

/*
 * Descriptors that read a running counter of the whole guest without the engine. The caller closes them. Errors also
 * SESSION_ERROR_UNSUPPORTED: the event is none of perf's.
 */
bool counter_descriptors(struct counter_table *table, const void *key, unsigned number,
                         struct counter_descriptors *descriptors, GError **error);

struct counter_info {
	enum counter_state state;
	/* The rest is set with ALLOCATED, RUNNING, STOPPED; valid until the next call. */
	struct counter_owner owner;
	const struct counter_request *request;
	const struct task_targets *targets;
};
/* number < COUNTERS_MAX. */
void counter_info_get(const struct counter_table *table, unsigned number, struct counter_info *info);

/* A counter with rings is read like a session: the attr, the ids of its events, a ring for each vCPU. */
bool counter_rings_check(const struct counter_table *table, const void *key, unsigned number, GError **error);
void counter_attr(const struct counter_table *table, unsigned number, struct perf_event_attr *attr);
/* "orc" or "fp", as the kernel is unwound; NULL: without call chains. */
const char *counter_unwinder(const struct counter_table *table, unsigned number);
struct ring *counter_ring(const struct counter_table *table, unsigned number, unsigned vcpu);

#endif
