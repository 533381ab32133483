// SPDX-License-Identifier: BSD-2-Clause
/* A sample's call chain as frames that symbols can be looked up for. */
#ifndef VPROF_PROFILE_CHAIN_H
#define VPROF_PROFILE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/record/record.h"

/* Of one sample, 15 KiB; perf's own limit is 127 unless a sysctl raises it. */
#define CHAIN_FRAMES_MAX 960u

struct chain_frame {
	uint64_t ip;   /* where the sample fell, or the last byte of the call instruction that leads there */
	uint16_t misc; /* PERF_RECORD_MISC_KERNEL, _USER, _HYPERVISOR (vprof/exit.h has what ip is) or _UNKNOWN */
};

/*
 * The frames without perf's marks (PERF_CONTEXT_*), innermost first, the outermost left out beyond CHAIN_FRAMES_MAX; a
 * sample without a chain is one frame. Returns how many, at least 1.
 */
uint32_t chain_frames(const struct record_sample *sample, struct chain_frame frames[CHAIN_FRAMES_MAX]);

/* The parts of a chain in the guest; a sample without a chain has neither. */
struct chain_parts {
	bool kernel, user;
};

/* A chain ends in user space if it has that part: the kernel's was walked to where it was entered. */
struct chain_parts chain_parts(const struct record_sample *sample);

#endif
