// SPDX-License-Identifier: BSD-2-Clause
/* The watcher of one vCPU: turns counter overflows into samples in its ring. */
#ifndef VPROF_SAMPLE_SAMPLER_H
#define VPROF_SAMPLE_SAMPLER_H

#include <stdatomic.h>

#include "counter/route.h"
#include "guest/task_match.h"
#include "sample/session_config.h"
#include "sample/table_store.h"
#include "stream/namer.h"
#include "stream/statistics.h"

/* Where a sample fell. */
enum sampler_mode { SAMPLER_KERNEL, SAMPLER_USER, SAMPLER_HYPERVISOR, SAMPLER_MODES };

struct sampling; /* sampler_priv.h */

/*
 * [I] immutable after sampler_init, [v] the vCPU's thread only, or the route's, [a] atomic: stored by that thread,
 * loaded by any.
 */
struct sampler {
	struct vcpu_watcher watcher; /* [I] first: what guest->watchers points to */
	struct guest *guest;         /* [I] */
	unsigned vcpu;               /* [I] */
	bool started;                /* [v] `port` is valid */
	struct vcpu_port port;       /* [v] */
	struct task_cpu cpu;         /* [v] updated by the samples of a route; without one, watch_hub has its own */
	struct sampling *sampling;   /* [v] NULL: no session, or the guest has ended */
	/* [a] Of the kernel itself (kernel_store of guest/processor.h); the second is set before. 0: not known yet */
	_Atomic uint64_t page_tables[2];
	_Atomic uint64_t stalled_since;          /* [a] CLOCK_MONOTONIC; 0: it counts */
	struct statistics_live statistics;       /* [a] */
	_Atomic uint64_t counted[SAMPLER_MODES]; /* [a] events that samples stand for, by where they fell */
};

void sampler_init(struct sampler *sampler, struct guest *guest, unsigned vcpu);

/* What the samplers of a session share. It stays the caller's until sampler_close, or `stopped`. */
struct sampler_config {
	const struct counter_delivery *delivery;
	const struct session_config *session;
	const struct unwind_config *unwind; /* NULL: no call chains */
	const struct os_kernel *kernel;     /* with tasks; NULL: samples have no pid */
	struct task_claims *claims;         /* shared by all samplers; with a ring */
	const struct task_cpu *cpu;         /* of this vCPU, updated by its watch_hub; NULL: a route samples */
	bool cgroups;                       /* samples have PERF_SAMPLE_CGROUP; 0 where `kernel` has none */
	struct table_store *tables;         /* of programs, to unwind user space; NULL */
	unsigned first_event;               /* number of events[0] in session_event_id */
	const struct task_targets *targets; /* samples of these only; NULL: all */
	struct task_family *family;         /* with targets */
};

/* On the vCPU's thread: other targets from now on, borrowed as those of sampler_open. */
void sampler_retarget(struct sampler *sampler, const struct task_targets *targets);

/* Both on the vCPU's thread. `ring` is borrowed as the configuration is; NULL: samples only count. */
bool sampler_open(struct sampler *sampler, const struct sampler_config *config, struct ring *ring, GError **error);
void sampler_close(struct sampler *sampler);

/*
 * Instead of sampler_open, for a guest that a route samples: call it before the route starts, and sampler_close after
 * the route has stopped. In between, the thread of the route calls the functions below.
 */
void sampler_open_route(struct sampler *sampler, const struct sampler_config *config, struct ring *ring);
void sampler_take(struct sampler *sampler, const struct counter_sample *sample);
/*
 * A sample of a task that is on no vCPU; with either kind of sampler, on its thread. What is known of what the vCPU
 * itself runs stays as it was. False when it does not sample.
 */
bool sampler_take_waiting(struct sampler *sampler, const struct counter_sample *sample);
/* Another sample that differs from one that was written (counter_sample.written) only in its time and period. */
bool sampler_take_again(struct sampler *sampler, const struct record_sample *sample);
void sampler_statistics_set(struct sampler *sampler, const struct counter_statistics *statistics);
/* A PERF_RECORD_THROTTLE or _UNTHROTTLE; what the sampler's own counters have, it takes itself. */
void sampler_throttled(struct sampler *sampler, const struct counter_throttle *throttle);

/* session_flush and session_add_sample for one vCPU, on its thread. */
void sampler_flush(struct sampler *sampler);
bool sampler_add(struct sampler *sampler, const struct session_sample *sample, GError **error);

/*
 * The vCPU switches from one task to the next; NULL: the task could not be read. time_ns: CLOCK_MONOTONIC. On its
 * thread.
 */
void sampler_switched(struct sampler *sampler, const struct task_view *view, const struct task *previous,
                      const struct task *next, uint64_t time_ns);

/* True when its counters are paused and `ring` has room again. Any thread. */
bool sampler_can_resume(const struct sampler *sampler, const struct ring *ring);
/* On the vCPU's thread. */
void sampler_resume(struct sampler *sampler);

/* Walks by the kernel's own page tables, as its samples have seen them; false: not yet. Any thread. */
bool sampler_kernel_walk(const struct sampler *sampler, struct page_walk *walk);

/* Since sampler_open. Any thread. */
void sampler_counted_read(const struct sampler *sampler, uint64_t counted[SAMPLER_MODES]);
/* Since sampler_open, with what its ring counts; NULL: it has none. Any thread. */
void sampler_statistics_read(const struct sampler *sampler, const struct ring *ring, struct session_statistics *out);

#endif
