// SPDX-License-Identifier: BSD-2-Clause
/* What a PMU's counters count by. */
#ifndef VPROF_PMU_X86_SOURCE_H
#define VPROF_PMU_X86_SOURCE_H

#include "pmu/x86/pmu.h"

/* `counter`: 0..PMU_COUNTERS-1. */
struct pmu_source_ops {
	/* Begins with `left` to count until the overflow. False: it cannot count this. */
	bool (*start)(struct pmu_source *source, unsigned counter, const struct pmu_counting *what, uint64_t left);
	void (*stop)(struct pmu_source *source, unsigned counter);
	/* What a started counter has counted since its start or the last call. */
	uint64_t (*take)(struct pmu_source *source, unsigned counter);
	/* Its overflow is `left` away from the last take. */
	void (*aim)(struct pmu_source *source, unsigned counter, uint64_t left);
};

struct pmu_source {
	const struct pmu_source_ops *ops;
};

#endif
