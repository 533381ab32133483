// SPDX-License-Identifier: BSD-2-Clause
/*
 * arm64: the PMU's registers are the kernel's alone, so what its driver has made of them is asked. How many counters
 * there are beside that of the cycles, it does not tell programs.
 */
#include <glob.h>
#include <stddef.h>

#include "counter/host_pmu.h"

/* drivers/perf/arm_pmuv3.c: one for each kind of processor. */
#define DEVICES "/sys/bus/event_source/devices/armv8_*"
#define CYCLES_WIDTH 64u

bool host_pmu_read(struct host_pmu *pmu)
{
	glob_t found;
	const bool has = glob(DEVICES, GLOB_NOSORT, NULL, &found) == 0;

	globfree(&found);
	if (has)
		*pmu = (struct host_pmu){.name = "Arm PMU", .version = 3, .fixed = {1, CYCLES_WIDTH}};
	return has;
}
