// SPDX-License-Identifier: BSD-2-Clause
/* The watcher of one vCPU: turns counter overflows into samples in its ring. */
#ifndef VPROF_SAMPLE_SAMPLER_H
#define VPROF_SAMPLE_SAMPLER_H

#include <stdatomic.h>

#include "counter/route.h"
#include "guest/task_match.h"
#include "sample/namer.h"
#include "sample/session_config.h"
#include "sample/statistics.h"

/* Where a sample fell. */
enum sampler_mode { SAMPLER_KERNEL, SAMPLER_USER, SAMPLER_HYPERVISOR, SAMPLER_MODES };

struct sampling; /* sampler_priv.h */

/*
 * [I] immutable after sampler_init, [v] the vCPU's thread only, or the route's, [a] atomic: stored by that thread,
 * loaded by any.
 */
struct sampler {
	struct vcpu_watcher watcher;    /* [I] first: what guest->watchers points to */
	struct guest *guest;            /* [I] */
	unsigned vcpu;                  /* [I] */
	bool started;                   /* [v] `port` is valid */
	struct vcpu_port port;          /* [v] */
	struct task_cpu cpu;            /* [v] kept up by the samples of a route; else the watch_hub does */
	struct sampling *sampling;      /* [v] NULL: no session, or the guest has ended */
	_Atomic uint64_t page_tables;   /* [a] CR3 of the kernel itself, bit 0: with five levels; 0: not known yet */
	_Atomic uint64_t stalled_since; /* [a] CLOCK_MONOTONIC; 0: it counts */
	struct sampler_statistics {
#define X(name, help) _Atomic uint64_t name;
		SESSION_STATISTICS(X)
#undef X
	} statistics;                            /* [a] */
	_Atomic uint64_t counted[SAMPLER_MODES]; /* [a] events that samples stand for, by where they fell */
};

void sampler_init(struct sampler *sampler, struct guest *guest, unsigned vcpu);

/* What the samplers of a session share. All of it stays the caller's until sampler_close, or `stopped`. */
struct sampler_config {
	const struct counter_delivery *delivery;
	const struct session_config *session;
	const struct unwind_config *unwind; /* NULL: no call chains */
	const struct kernel_layout *kernel; /* with tasks; NULL: samples have no pid */
	struct task_claims *claims;         /* of all samplers together; with a ring */
	const struct task_cpu *cpu;         /* of this vCPU, kept up by its watch_hub; NULL: a route samples */
	bool cgroups;                       /* samples have PERF_SAMPLE_CGROUP; 0 where `kernel` has none */
	unsigned first_event;               /* number of events[0] in session_event_id */
	const struct task_targets *targets; /* samples of these only; NULL: all */
	struct task_family *family;         /* with targets */
};

/* Both on the vCPU's thread. `ring` is borrowed as the configuration is; NULL: samples only count. */
bool sampler_open(struct sampler *sampler, const struct sampler_config *config, struct ring *ring, GError **error);
void sampler_close(struct sampler *sampler);

/*
 * In place of sampler_open for a guest that a route samples, before the route starts; sampler_close comes after it has
 * stopped. In between, the route's thread hands over what it sees.
 */
void sampler_open_route(struct sampler *sampler, const struct sampler_config *config, struct ring *ring);
void sampler_take(struct sampler *sampler, const struct counter_sample *sample);
void sampler_statistics_set(struct sampler *sampler, const struct counter_statistics *statistics);

/* What session_flush and session_add_sample do to one vCPU. Both on its thread. */
void sampler_flush(struct sampler *sampler);
bool sampler_add(struct sampler *sampler, const struct session_sample *sample, GError **error);

/* The vCPU goes over from one task to the next; NULL: it could not be read. On its thread. */
void sampler_switched(struct sampler *sampler, const struct task_view *view, const struct task *previous,
                      const struct task *next);

/* Whether its counters stand still though the ring has room to go on. Any thread. */
bool sampler_can_resume(const struct sampler *sampler, const struct ring *ring);
/* On the vCPU's thread. */
void sampler_resume(struct sampler *sampler);

/* Any thread; since sampler_open. */
void sampler_counted_read(const struct sampler *sampler, uint64_t counted[SAMPLER_MODES]);
/* What the sampler counts; the ring has statistics of its own. Any thread. */
void sampler_statistics_read(const struct sampler *sampler, struct session_statistics *out);

#endif
