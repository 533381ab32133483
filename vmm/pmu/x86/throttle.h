// SPDX-License-Identifier: BSD-2-Clause
/*
 * The share of a vCPU's time that the interrupts of its PMU take: half at most, whatever the rate of the overflows and
 * the speed of the guest. After each interrupt, the next waits until the guest has run for as long as that one took.
 * (perf throttles its own interrupts for the same reason; what a guest's kernel asks for, it takes for cheap.)
 *
 * When an interrupt is over, no exit tells: the guest is looked at, at intervals of a quarter of the time so far, and
 * an interrupt counts as over when a look finds it so. Times are the CPU time of the vCPU's thread in ns.
 */
#ifndef VPROF_PMU_X86_THROTTLE_H
#define VPROF_PMU_X86_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. */
struct pmu_throttle {
	bool handling;     /* no look has found the last interrupt over */
	uint64_t began_ns; /* it was delivered */
	uint64_t look_ns;  /* the next look; where `handling` */
	uint64_t open_ns;  /* the next interrupt may come; where not */
};

void pmu_throttle_delivered(struct pmu_throttle *throttle, uint64_t now_ns);
/* The guest did what comes near the end of an interrupt: a look soon makes `open_ns` exact. */
void pmu_throttle_nearly(struct pmu_throttle *throttle, uint64_t now_ns);

/* Whether to look now, and what a look has found. */
bool pmu_throttle_looks(const struct pmu_throttle *throttle, uint64_t now_ns);
void pmu_throttle_found(struct pmu_throttle *throttle, uint64_t now_ns, bool handling);

/* Whether an interrupt may be delivered. */
bool pmu_throttle_open(const struct pmu_throttle *throttle, uint64_t now_ns);
/* How long the guest may run until the next look, or, if an interrupt `waits`, until it may come; UINT64_MAX: for ever.
 */
uint64_t pmu_throttle_in_ns(const struct pmu_throttle *throttle, uint64_t now_ns, bool waits);

#endif
