// SPDX-License-Identifier: BSD-2-Clause
/* The watcher of one vCPU: turns counter overflows into samples in its ring. */
#ifndef VPROF_SAMPLE_SAMPLER_H
#define VPROF_SAMPLE_SAMPLER_H

#include <stdatomic.h>

#include "sample/session.h"

/*
 * [I] immutable after sampler_init, [v] the vCPU's thread only, [a] atomic: stored by the vCPU's thread, loaded by any.
 */
struct sampler {
	struct vcpu_watcher watcher;        /* [I] first: what guest->watchers points to */
	struct guest *guest;                /* [I] */
	unsigned vcpu;                      /* [I] */
	bool started;                       /* [v] `port` is valid */
	struct vcpu_port port;              /* [v] */
	struct counter_set *set;            /* [v] NULL: no session, or the guest has ended */
	const struct counter_event *events; /* [v] of the session's configuration, while `set` is open */
	struct ring *ring;                  /* [v] likewise */
	const struct unwind_config *unwind; /* [v] likewise; NULL: no call chains */
	struct guest_regs regs;             /* [v] when KVM_RUN last returned */
	struct sampler_statistics {
#define X(name, help) _Atomic uint64_t name;
		SESSION_STATISTICS(X)
#undef X
	} statistics; /* [a] */
};

void sampler_init(struct sampler *sampler, struct guest *guest, unsigned vcpu);

/* Both on the vCPU's thread. `config`, `unwind` (NULL: no call chains) and `ring` stay the caller's until
 * sampler_close, or `stopped`. */
bool sampler_open(struct sampler *sampler, const struct counter_delivery *delivery, const struct session_config *config,
                  const struct unwind_config *unwind, struct ring *ring, GError **error);
void sampler_close(struct sampler *sampler);

/* Any thread. */
void sampler_statistics_read(const struct sampler *sampler, struct session_statistics *out);

#endif
