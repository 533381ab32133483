// SPDX-License-Identifier: BSD-2-Clause
/* The two ways in which pmu_host counts. Arguments as in struct pmu_source_ops. */
#ifndef VPROF_PMU_X86_HOST_PRIV_H
#define VPROF_PMU_X86_HOST_PRIV_H

#include "pmu/x86/host.h"

/* host_clock.c */
void pmu_clock_init(struct pmu_clock *clock, uint64_t tsc_khz);
bool pmu_clock_attach(struct pmu_clock *clock, int signal, GError **error);
void pmu_clock_detach(struct pmu_clock *clock);
bool pmu_clock_start(struct pmu_clock *clock, unsigned counter, const struct pmu_counting *what, uint64_t left);
void pmu_clock_stop(struct pmu_clock *clock, unsigned counter);
uint64_t pmu_clock_take(struct pmu_clock *clock, unsigned counter);
void pmu_clock_aim(struct pmu_clock *clock, unsigned counter, uint64_t left);
void pmu_clock_left(struct pmu_clock *clock, bool interrupted, bool user);
bool pmu_clock_due(const struct pmu_clock *clock);
void pmu_clock_enter(struct pmu_clock *clock, uint64_t in_ns);

/* host_hardware.c */
bool pmu_hardware_start(struct pmu_host *host, unsigned counter, const struct pmu_counting *what, uint64_t left);
void pmu_hardware_stop(struct pmu_host *host, unsigned counter);
uint64_t pmu_hardware_take(struct pmu_host *host, unsigned counter);
void pmu_hardware_aim(struct pmu_host *host, unsigned counter, uint64_t left);
void pmu_hardware_close(struct pmu_host *host, unsigned counter);

#endif
