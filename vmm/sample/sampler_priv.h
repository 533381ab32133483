// SPDX-License-Identifier: BSD-2-Clause
/* What the files of the sampler share. */
#ifndef VPROF_SAMPLE_SAMPLER_PRIV_H
#define VPROF_SAMPLE_SAMPLER_PRIV_H

#include "guest/guest_debug.h"
#include "lib/record/record.h"
#include "sample/sampler.h"
#include "stream/sample_stream.h"

#define SAMPLER_PYTHON_SLOTS 1024u

/* The state of a sampler from sampler_open to sampler_close. Only the vCPU's thread uses it, or the route's. */
struct sampling {
	struct sampler *sampler;
	struct counter_set *set;            /* NULL: a route counts, or the vCPU is stepped */
	const struct counter_event *events; /* of the session's configuration */
	unsigned first_event;               /* number of events[0] in session_event_id */
	const struct task_targets *targets; /* NULL: samples of every task */
	struct task_family *family;         /* with targets */
	bool unwinds;                       /* samples have call chains of the guest, by `unwind` */
	bool chains;                        /* samples have call chains: the guest's, or the host's side */
	bool has_cgroups;                   /* samples have PERF_SAMPLE_CGROUP */
	bool stalls;                        /* counting pauses while the ring is nearly full */
	bool steps;                         /* the vCPU is stepped by `stepper`, and has no counters */
	struct unwind_config unwind;        /* the session's, with the vCPU's modules */
	struct guest_stepper stepper;
	const struct os_kernel *kernel;      /* NULL: tasks are not told apart */
	const struct task_cpu *cpu;          /* with tasks */
	struct guest_regs regs;              /* when KVM_RUN last returned, or of the route's sample */
	const struct counter_sample *sample; /* while it is taken */
	struct sample_stream stream;         /* without a ring, samples only count */
	/* Each event, by the host's kernel: CLOCK_MONOTONIC; 0: it counts. */
	uint64_t throttled_since[COUNTER_EVENTS_MAX];
	uint64_t pythons[SAMPLER_PYTHON_SLOTS]; /* hashes of the code objects that have a name in the recording */
};

#define SAMPLER_HOST_FRAMES_MAX 127u /* perf_event_max_stack; more where a sysctl was raised */
/* The guest's frames, and PERF_CONTEXT_HV with the exit or the host's frames. */
#define SAMPLER_CHAIN_MAX (UNWIND_CHAIN_MAX + SAMPLER_HOST_FRAMES_MAX + 1u)

/* sampler_chain.c: counts why the chain of a sample with these bits of misc ends. */
void sampler_chain_count(struct sampler *sampler, uint16_t misc);
/*
 * sampler_chain.c: gives `sample` its call chain, in `chain`: the host's frames first, then the guest's; a single frame
 * when the session wants only the host's. Sets the bits of misc that say why the chain ends, and counts it.
 */
void sampler_chain_fill(struct sampling *sampling, struct record_sample *sample, uint64_t chain[SAMPLER_CHAIN_MAX]);

#endif
