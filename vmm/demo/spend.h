// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_DEMO_SPEND_H
#define VPROF_DEMO_SPEND_H

#include "demo/x86.h"

/*
 * Spends `ticks` of TSC time in the calling function. Slices of equal length make the shares exact whatever the host
 * does; that a longer gap between two looks at the clock, in which the host ran something else, does not count keeps
 * them exact when it does a lot.
 */
static inline __attribute__((always_inline)) void spend(uint64_t ticks)
{
	uint64_t spent = 0;
	uint64_t before = rdtsc();
	while (spent < ticks) {
		const uint64_t now = rdtsc();
		if (now - before < ticks / 4)
			spent += now - before;
		before = now;
	}
}

#endif
