// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts for the PMU of a vCPU, on its thread: hardware events of the host's PMU where it has them, and otherwise
 * cycles and reference cycles, from the time that the thread ran in the guest. A timer, or the hardware event,
 * interrupts KVM_RUN when an overflow is due.
 *
 * A clock does not tell the modes apart. Counters of both modes are exact; those of one mode are estimated: the clock
 * ticks about every millisecond of guest time, and the time of a tick goes to the mode that it finds.
 */
#ifndef VPROF_PMU_X86_HOST_H
#define VPROF_PMU_X86_HOST_H

#include <time.h>

#include "counter/counter.h"
#include "pmu/x86/source.h"

/* What this host can count for a guest: a bit for each enum pmu_event. */
struct pmu_host_events {
	uint32_t hardware;                      /* by its PMU */
	uint32_t all;                           /* those and the ones of the clock */
	bool raw;                               /* any event that a guest of this processor's kind may select, too */
	struct counter_event event[PMU_EVENTS]; /* valid where `hardware` has the bit */
};
void pmu_host_probe(struct pmu_host_events *events);
/* "cycles", "instructions", ... as counter_event_parse knows them. */
const char *pmu_event_name(enum pmu_event event);

struct pmu_clock_counter {
	struct pmu_counting what;
	uint64_t taken;  /* position, in cycles, up to which take has answered */
	uint64_t target; /* position of the overflow */
};

/* Times are guest time in ns since the clock began, if not said otherwise. */
struct pmu_clock {
	uint64_t khz;            /* of the TSC */
	uint32_t running;        /* a bit for each counter */
	bool in_guest;           /* `entered_cpu_ns` is valid */
	uint64_t entered_cpu_ns; /* thread CPU time at the entry */
	uint64_t ran_ns;
	uint64_t split_ns[2];   /* of it, up to the last tick, kernel's and user's */
	uint64_t tick_ns;       /* the next tick */
	uint64_t random;        /* xorshift64 state, never 0 */
	uint64_t alarm_wall_ns; /* CLOCK_MONOTONIC; UINT64_MAX: not armed */
	timer_t timer;
	bool has_timer;
	struct pmu_clock_counter counters[PMU_COUNTERS];
};

struct pmu_hardware_counter {
	int fd; /* -1: none */
	struct pmu_counting what;
	uint64_t taken;
};

struct pmu_host {
	struct pmu_source source; /* first */
	const struct pmu_host_events *events;
	int signal;
	uint32_t by_hardware; /* a bit for each counter that runs on the host's PMU */
	struct pmu_clock clock;
	struct pmu_hardware_counter hardware[PMU_COUNTERS];
};

/*
 * Everything below is for the vCPU's thread. `signal` interrupts KVM_RUN on it, also when it comes just before
 * (kvm_run.immediate_exit). Errors: COUNTER_ERROR_SYSTEM.
 */
void pmu_host_init(struct pmu_host *host, const struct pmu_host_events *events, uint64_t tsc_khz);
bool pmu_host_attach(struct pmu_host *host, int signal, GError **error);
void pmu_host_detach(struct pmu_host *host);

/* KVM_RUN returned: with EINTR (`interrupted`), and the guest was in user mode or not. */
void pmu_host_left(struct pmu_host *host, bool interrupted, bool user);
/* Whether an overflow may have come, so that pmu_sync is called for. */
bool pmu_host_due(const struct pmu_host *host, bool interrupted);
/* The guest is entered next. KVM_RUN is interrupted after `in_ns` at the latest, unless that is UINT64_MAX. */
void pmu_host_enter(struct pmu_host *host, uint64_t in_ns);

#endif
