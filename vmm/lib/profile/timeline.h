// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples by time and vCPU: what each vCPU did in each of some hundreds of slices of a recording. Its length is
 * unknown before its end.
 *
 * A slice is a power of two of nanoseconds, aligned to it. Slices begin short; as soon as the samples span more than
 * TIMELINE_SLICES_MAX, two become one. Samples may come in any order.
 */
#ifndef VPROF_PROFILE_TIMELINE_H
#define VPROF_PROFILE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/profile/mode.h"
#include "lib/record/record.h"

#define TIMELINE_SLICES_MAX 600u

struct timeline;

struct timeline *timeline_new(void);
void timeline_free(struct timeline *timeline);

void timeline_add(struct timeline *timeline, const struct record_sample *sample);

/* What one vCPU did in one slice. */
struct timeline_cell {
	uint64_t slice; /* since 0 ns, of timeline_slice_ns each */
	uint32_t cpu;
	enum profile_mode mode;
	uint64_t exit_reason; /* of PROFILE_HYPERVISOR: of the exit that was handled, vprof/exit.h; else 0 */
	uint64_t period;
};

/* Those that are not empty, by slice, vCPU, mode and exit reason. Array of *n by g_free. */
struct timeline_cell *timeline_cells(const struct timeline *timeline, size_t *n);
uint64_t timeline_slice_ns(const struct timeline *timeline);

#endif
