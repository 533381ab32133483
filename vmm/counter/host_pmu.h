// SPDX-License-Identifier: BSD-2-Clause
/* The PMU that the processor of the host reports. perf may not be able to use it. */
#ifndef VPROF_COUNTER_HOST_PMU_H
#define VPROF_COUNTER_HOST_PMU_H

#include <stdbool.h>
#include <stdint.h>

struct host_pmu_counters {
	unsigned counters; /* for each logical processor */
	unsigned width;    /* in bits */
};

struct host_pmu {
	const char *name; /* "Intel architectural", "AMD", "Arm PMU" */
	unsigned version; /* of architectural performance monitoring; AMD: of PerfMon, 1 where it has no number */
	struct host_pmu_counters general, fixed; /* 0 counters: none, or not known */
};

struct host_pmu_cpuid {
	uint32_t eax, ebx, ecx, edx;
};

/* x86-64. `cpuid`: returns a leaf of CPUID, all 0 for one that the processor does not have. False when there is no PMU.
 */
bool host_pmu_decode(struct host_pmu_cpuid (*cpuid)(uint32_t leaf), struct host_pmu *pmu);
/* Of this processor. */
bool host_pmu_read(struct host_pmu *pmu);

#endif
