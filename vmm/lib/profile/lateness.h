// SPDX-License-Identifier: BSD-2-Clause
/*
 * How late overflows come: what was counted from one sample to the next, in periods, as a distribution.
 *
 * The engines' samples have what was really counted. With an ideal counter each has one period, by which it is
 * jittered: 0.95 to 1.05 (counter_set.c). More is what the guest still ran after the overflow (skid), and overflows
 * that came together.
 */
#ifndef VPROF_PROFILE_LATENESS_H
#define VPROF_PROFILE_LATENESS_H

#include <stdint.h>

#define LATENESS_PARTS 100u   /* of a period: the resolution */
#define LATENESS_PERIODS 100u /* what is later counts as that */

/* All zero at first. */
struct lateness {
	uint64_t samples;
	uint64_t counts[LATENESS_PERIODS * LATENESS_PARTS + 1];
};

/* `counted` in a sample of an event with a period, not 0. */
void lateness_add(struct lateness *lateness, uint64_t counted, uint64_t period);

/* The periods that this share of the samples, 0..1, has at most; 0: no samples. */
double lateness_quantile(const struct lateness *lateness, double share);

#endif
