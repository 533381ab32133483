// SPDX-License-Identifier: BSD-2-Clause
/* The call chain of a sample. On the sampler's thread, as everything there. */
#ifndef VPROF_SAMPLE_SAMPLER_CHAIN_H
#define VPROF_SAMPLE_SAMPLER_CHAIN_H

#include "lib/record/record.h"
#include "sample/sampler.h"

#define SAMPLER_HOST_FRAMES_MAX 127u /* perf_event_max_stack; more only where a sysctl was raised */
/* And the exit that was handled, or what the host did for it, behind PERF_CONTEXT_HV. */
#define SAMPLER_CHAIN_MAX (UNWIND_CHAIN_MAX + SAMPLER_HOST_FRAMES_MAX + 1u)

/*
 * Gives `sample` the guest's call chain where it stands, behind what the host did for it, in `chain`; one frame where
 * the session wants the host's alone. Also says in misc why it ends there.
 */
void sampler_chain_fill(struct sampler *sampler, struct record_sample *sample, uint64_t chain[SAMPLER_CHAIN_MAX]);

#endif
