// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the files of probes. */
#ifndef VPROF_SAMPLE_PROBE_PRIV_H
#define VPROF_SAMPLE_PROBE_PRIV_H

#include <stdatomic.h>

#include "sample/namer.h"
#include "sample/probe.h"
#include "sample/probe_text.h"

/* [M] main thread only, [I] immutable while the probe is in its set, [a] atomic. */
struct probe {
	struct guest_breakpoint breakpoint; /* [I] first: the argument of `hit`; PROBE_BY_BREAKPOINT */
	struct probe_set *set;              /* [I] */
	unsigned id;                        /* [I] */
	struct probe_spec spec;             /* [I] */
	struct probe_options options;       /* [I] */
	GSource *timer;                     /* [M] PROBE_BY_TIMER while recording */
	_Atomic uint64_t events;            /* [a] by several vCPUs */
};

/* [v] the vCPU's thread only; [a] stored by it, loaded by any. */
struct probe_vcpu {
	bool recording;                                  /* [v] */
	struct ring *ring;                               /* [v] the set's */
	struct task_cpu cpu;                             /* [v] */
	struct announcer announcer;                      /* [v] */
	struct namer namer;                              /* [v] */
	_Atomic uint64_t event, dropevt, quirk, no_task; /* [a] */
};

/*
 * [M]. probes, kernel and orc do not change while vCPUs record, since their threads read them; claims belongs to these
 * threads.
 */
struct probe_set {
	struct guest_observer observer; /* first: the argument of `exited` */
	struct probe_hub *hub;
	GPtrArray *probes; /* of struct probe */
	unsigned last_id;
	bool recording;
	struct ring **rings;                /* one for each vCPU once recorded; NULL */
	struct probe_vcpu *vcpus;           /* one for each vCPU */
	const struct kernel_layout *kernel; /* NULL: tasks are not told apart */
	struct task_claims *claims;
	const struct orc *orc; /* NULL: chains by frame pointers */
	uint64_t skiptick;
};

struct probe_hub {
	struct guest *guest;
	struct session *session;
	GPtrArray *sets;         /* borrowed */
	struct probe_text *text; /* NULL: not needed yet, or the image is not known */
	uint64_t markers;        /* by clients, so far */
};

/* probe_event.c, on the vCPU's thread. */
void probe_event_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                     const struct guest_gprs *gprs);
void probe_event_exited(struct guest_observer *observer, unsigned vcpu, const struct guest_access *access,
                        const struct guest_regs *regs, const struct guest_gprs *gprs);
void probe_event_tick(struct probe *probe, unsigned vcpu);
/* With the arguments of its provider. */
void probe_event_marker(struct probe *probe, unsigned vcpu, const uint64_t *arguments);
/* Writes what was dropped into the ring, and wakes its reader. */
void probe_event_finish(struct probe_vcpu *cpu, unsigned vcpu);

/* probe_timer.c; a timer runs on the main context. */
GSource *probe_timer_start(struct probe *probe);
void probe_timer_stop(GSource *timer);

#endif
