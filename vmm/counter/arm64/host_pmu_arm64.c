// SPDX-License-Identifier: BSD-2-Clause
/*
 * arm64: the PMU's registers are the kernel's alone, so what its driver has made of them is asked. How many counters
 * there are beside that of the cycles, it does not tell programs.
 */
#include <glib.h>
#include <glob.h>

#include "counter/host_pmu.h"

/* drivers/perf/arm_pmuv3.c: one for each kind of processor. */
#define DEVICES "/sys/bus/event_source/devices/armv8_*"
#define CYCLES_WIDTH 64u

/* Looked at once, by counter_settings_open: an engine in its sandbox sees no files. */
bool host_pmu_read(struct host_pmu *pmu)
{
	static gsize looked; /* 1 + whether there is one */

	if (g_once_init_enter(&looked)) {
		glob_t found;
		const gsize has = glob(DEVICES, GLOB_NOSORT, NULL, &found) == 0;

		globfree(&found);
		g_once_init_leave(&looked, 1 + has);
	}
	if (looked == 1)
		return false;
	*pmu = (struct host_pmu){.name = "Arm PMU", .version = 3, .fixed = {1, CYCLES_WIDTH}};
	return true;
}
