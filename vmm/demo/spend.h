// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_DEMO_SPEND_H
#define VPROF_DEMO_SPEND_H

#include "processor.h"

/*
 * Spends `ticks` of the clock in the calling function. A longer gap between two readings of the clock, in which the
 * host ran something else, is not counted, so that the shares are exact on a busy host, too.
 *
 * Returns the number of readings: the fewer there are, the more the guest was interrupted.
 */
static inline __attribute__((always_inline)) uint64_t spend(uint64_t ticks)
{
	uint64_t looks = 0;
	uint64_t spent = 0;
	uint64_t before = clock_read();

	/* gcc leaves the frame out of a leaf function that keeps nothing on its stack, and its caller would be lost. */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	while (spent < ticks) {
		const uint64_t now = clock_read();
		if (now - before < ticks / 4)
			spent += now - before;
		before = now;
		looks++;
	}
	return looks;
}

#endif
