// SPDX-License-Identifier: BSD-2-Clause
/*
 * The counters of an engine's clients, beside its session: who holds which, what it counts and of whom. After hwpmc(4):
 * a counter is allocated in one of four modes, attached to tasks in two of them, started, read and stopped, by its
 * owner; what its owner leaves behind is released. Main thread only.
 */
#ifndef VPROF_SAMPLE_COUNTER_TABLE_H
#define VPROF_SAMPLE_COUNTER_TABLE_H

#include "guest/task_match.h"
#include "sample/sampler.h"
#include "sample/session.h"

#define COUNTERS_MAX 32u
#define COUNTER_RING_BYTES_DEFAULT (1u << 18)

#define COUNTER_MODES(X)                            \
	X(COUNTER_GUEST_COUNTING, "guest-counting") \
	X(COUNTER_GUEST_SAMPLING, "guest-sampling") \
	X(COUNTER_TASK_COUNTING, "task-counting")   \
	X(COUNTER_TASK_SAMPLING, "task-sampling")

#define X(id, name) id,
enum counter_mode { COUNTER_MODES(X) COUNTER_MODES_COUNT };
#undef X

enum counter_state { COUNTER_FREE, COUNTER_ALLOCATED, COUNTER_RUNNING, COUNTER_STOPPED, COUNTER_DISABLED };

/* "guest-counting", ...; "free", "allocated", "running", "stopped", "disabled" */
const char *counter_mode_name(enum counter_mode mode);
const char *counter_state_name(enum counter_state state);
bool counter_mode_is_task(enum counter_mode mode);
bool counter_mode_is_sampling(enum counter_mode mode);

/* Who holds a counter. */
struct counter_owner {
	const void *key; /* tells owners apart; never looked into */
	int pid;
	unsigned uid;
};

struct counter_request {
	struct counter_event event;
	enum counter_mode mode;
	/*
	 * Of samples. With a counting mode it is zero to count exactly, else the counter sums up what samples stand
	 * for: an estimate, which can tell what an exact count cannot.
	 */
	struct counter_rate rate;
	bool descendants;  /* with a task mode */
	size_t ring_bytes; /* of each vCPU's ring, with a sampling mode; 0: COUNTER_RING_BYTES_DEFAULT */
};

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

/* What one vCPU has counted. */
struct counter_value {
	uint64_t value;
	uint64_t enabled_ns, running_ns;      /* thread time with the counter, and when it really counted; exact only */
	uint64_t modes[SAMPLER_MODES];        /* with samples: the parts of the value by where they fell */
	struct session_statistics statistics; /* likewise, since the last start */
};
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
