// SPDX-License-Identifier: BSD-2-Clause
/* The call chain of a sample. On the sampler's thread. */
#include <vprof/exit.h>

#include "sample/sampler_priv.h"
#include "sample/statistics.h"

/* Counts why the chain ends, and returns it as bits of misc. */
static uint16_t chain_end(struct sampler *sampler, enum unwind_end end)
{
	static const uint8_t words[UNWIND_ENDS] = {
		[UNWIND_END_OF_STACK] = VPROF_CHAIN_WHOLE,    [UNWIND_BAD_FRAME] = VPROF_CHAIN_BAD_FRAME,
		[UNWIND_NO_ENTRY] = VPROF_CHAIN_NO_ENTRY,     [UNWIND_DEPTH] = VPROF_CHAIN_DEPTH,
		[UNWIND_UNREADABLE] = VPROF_CHAIN_UNREADABLE,
	};
	_Atomic uint64_t *const statistics[UNWIND_ENDS] = {
		[UNWIND_END_OF_STACK] = &sampler->statistics.chain_end,
		[UNWIND_BAD_FRAME] = &sampler->statistics.chain_bad_frame,
		[UNWIND_NO_ENTRY] = &sampler->statistics.chain_no_entry,
		[UNWIND_DEPTH] = &sampler->statistics.chain_depth,
		[UNWIND_UNREADABLE] = &sampler->statistics.chain_unreadable,
	};

	statistic_add(statistics[end], 1);
	statistic_add(&sampler->statistics.truncated, end != UNWIND_END_OF_STACK);
	return (uint16_t)(words[end] << VPROF_CHAIN_END_SHIFT);
}

/* The exit that is being handled, or the host's frames without its PERF_CONTEXT_* words. */
static unsigned chain_fill_host(const struct counter_sample *taken, uint64_t ip,
                                uint64_t chain[SAMPLER_HOST_FRAMES_MAX + 1u])
{
	const size_t room = SAMPLER_HOST_FRAMES_MAX + 1u;
	unsigned n = 0;

	chain[n++] = (uint64_t)PERF_CONTEXT_HV;
	chain[n++] = ip;
	/* The first frame is the ip. A word that is not an address of host code would look like an exit. */
	for (size_t i = 0, seen = 0; taken && i < taken->n_host_chain && n < room; i++) {
		uint64_t word = taken->host_chain[i];

		if (word >= (uint64_t)PERF_CONTEXT_MAX || seen++ == 0)
			continue;
		if (!vprof_exit_is_host(word))
			break;
		chain[n++] = word;
	}
	return n;
}

void sampler_chain_fill(struct sampling *sampling, struct record_sample *sample, uint64_t chain[SAMPLER_CHAIN_MAX])
{
	const struct counter_sample *taken = sampling->sample;
	bool hypervisor = sample->misc == PERF_RECORD_MISC_HYPERVISOR;
	enum unwind_end end;
	unsigned n = 0;

	if (hypervisor)
		n = chain_fill_host(taken, sample->ip, chain);
	if (sampling->unwinds && sampling->regs.valid) {
		n += unwind(&sampling->unwind, sampling->sampler->guest, &sampling->regs,
		            taken ? taken->snapshot : NULL, chain + n, &end);
		sample->misc |= chain_end(sampling->sampler, end);
	} else if (!sampling->unwinds && !hypervisor) {
		chain[n++] = sample->misc == PERF_RECORD_MISC_USER ? (uint64_t)PERF_CONTEXT_USER
		                                                   : (uint64_t)PERF_CONTEXT_KERNEL;
		chain[n++] = sample->ip;
	}
	sample->chain = chain;
	sample->n_chain = n;
}
