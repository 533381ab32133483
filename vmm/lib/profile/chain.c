// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/chain.h"

/* The marks between the parts of a chain are its largest numbers. */
static bool is_context(uint64_t word)
{
	return word >= (uint64_t)PERF_CONTEXT_MAX;
}

static uint16_t context_misc(uint64_t word)
{
	switch (word) {
	case (uint64_t)PERF_CONTEXT_KERNEL:
		return PERF_RECORD_MISC_KERNEL;
	case (uint64_t)PERF_CONTEXT_USER:
		return PERF_RECORD_MISC_USER;
	case (uint64_t)PERF_CONTEXT_HV:
		return PERF_RECORD_MISC_HYPERVISOR;
	default:
		return PERF_RECORD_MISC_CPUMODE_UNKNOWN;
	}
}

uint32_t chain_frames(const struct record_sample *sample, struct chain_frame frames[CHAIN_FRAMES_MAX])
{
	uint16_t misc = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	bool exact = true;
	uint32_t n = 0;

	for (uint32_t i = 0; i < sample->n_chain && n < CHAIN_FRAMES_MAX; i++) {
		uint64_t word = sample->chain[i];

		if (is_context(word)) {
			misc = context_misc(word);
			exact = true;
			continue;
		}
		/*
		 * A return address may lie behind the last instruction of its function: the call before it does not.
		 * What stands behind a mark was interrupted, or is where it entered the kernel.
		 */
		frames[n++] = (struct chain_frame){.ip = exact ? word : word - 1, .misc = misc};
		exact = false;
	}
	if (n == 0)
		frames[n++] = (struct chain_frame){.ip = sample->ip, .misc = misc};
	return n;
}

struct chain_parts chain_parts(const struct record_sample *sample)
{
	struct chain_parts parts = {0};

	for (uint32_t i = 0; i < sample->n_chain; i++) {
		parts.kernel |= sample->chain[i] == (uint64_t)PERF_CONTEXT_KERNEL;
		parts.user |= sample->chain[i] == (uint64_t)PERF_CONTEXT_USER;
	}
	return parts;
}
