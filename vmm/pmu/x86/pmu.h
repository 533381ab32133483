// SPDX-License-Identifier: BSD-2-Clause
/*
 * The performance monitoring unit of one vCPU, as its guest sees it: architectural performance monitoring version 2
 * (SDM vol. 3B, chapter 20), four general and three fixed counters of 48 bits, without full-width writes, PEBS, LBR and
 * AnyThread. The registers are here; what they count comes from a source (source.h). One thread at a time.
 */
#ifndef VPROF_PMU_X86_PMU_H
#define VPROF_PMU_X86_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMU_GENERAL 4u
#define PMU_FIXED 3u
#define PMU_COUNTERS (PMU_GENERAL + PMU_FIXED)
#define PMU_WIDTH 48u

/* The events of CPUID leaf 0xA, in the order of its EBX (SDM vol. 3B, table 20-1). */
enum pmu_event {
	PMU_EVENT_CYCLES,
	PMU_EVENT_INSTRUCTIONS,
	PMU_EVENT_REF_CYCLES,
	PMU_EVENT_LLC_REFERENCES,
	PMU_EVENT_LLC_MISSES,
	PMU_EVENT_BRANCHES,
	PMU_EVENT_BRANCH_MISSES,
	PMU_EVENTS,
	PMU_EVENT_RAW = PMU_EVENTS, /* any other that a guest may write into a select register */
};

/* What one running counter counts. */
struct pmu_counting {
	enum pmu_event event;
	uint32_t raw; /* PMU_EVENT_RAW: event, unit mask, edge, invert and counter mask, as in the select register */
	bool user, kernel; /* one of them at least */
};

struct pmu_source;

/* The registers that a guest can write, and the counters. */
struct pmu_state {
	uint64_t select[PMU_GENERAL];   /* IA32_PERFEVTSELx */
	uint64_t counter[PMU_COUNTERS]; /* IA32_PMCx, then IA32_FIXED_CTRx */
	uint64_t fixed_control;         /* IA32_FIXED_CTR_CTRL */
	uint64_t global_control;        /* IA32_PERF_GLOBAL_CTRL */
	uint64_t global_status;         /* IA32_PERF_GLOBAL_STATUS */
	uint64_t debugctl;              /* IA32_DEBUGCTL, but for bits that are not the PMU's */
	bool interrupt;                 /* an overflow asks for an interrupt that has not been delivered */
};

struct pmu {
	struct pmu_state state;
	struct pmu_source *source;
	struct pmu_counting counting[PMU_COUNTERS];
	uint32_t running; /* a bit for each counter that `source` counts */
	/* Of overflows that the guest answers late. */
	uint32_t overflowed;           /* a bit for each counter that the guest has not written since */
	uint64_t period[PMU_COUNTERS]; /* the longest that the guest has set since it selected the event */
	uint64_t merged;               /* periods that went by meanwhile, at least */
};

/* As after power-up; `source` is borrowed. */
void pmu_init(struct pmu *pmu, struct pmu_source *source);
/* Power-up and RESET; an INIT leaves everything as it is (SDM vol. 3A, table 10-1). */
void pmu_reset(struct pmu *pmu);

/* pmu_load of any PMU takes *state. */
void pmu_save(struct pmu *pmu, struct pmu_state *state);
/* False, and nothing has changed, when *state has bits that a guest cannot have set. */
bool pmu_load(struct pmu *pmu, const struct pmu_state *state);

#define PMU_MSR_DEBUGCTL 0x1d9u /* shared with others: pmu_debugctl_* */
#define PMU_MSR_GLOBAL_CTRL 0x38fu
#define PMU_MSR_GLOBAL_OVF_CTRL 0x390u

/* The registers a PMU has, as ranges of MSRs; DEBUGCTL is one. */
struct pmu_msr_range {
	uint32_t first, last;
};
extern const struct pmu_msr_range pmu_msr_ranges[];
extern const size_t pmu_msr_ranges_n;

/* RDMSR and WRMSR of a register but DEBUGCTL. False: #GP, and nothing has changed. */
bool pmu_read(struct pmu *pmu, uint32_t msr, uint64_t *value);
bool pmu_write(struct pmu *pmu, uint32_t msr, uint64_t value);

/* The bits of DEBUGCTL that are the PMU's: FREEZE_PERFMON_ON_PMI. */
#define PMU_DEBUGCTL_BITS (UINT64_C(1) << 12)
uint64_t pmu_debugctl_read(const struct pmu *pmu);
void pmu_debugctl_write(struct pmu *pmu, uint64_t value);

/* RDPMC (SDM vol. 2B) with this ECX at CPL 0. False: #GP. */
bool pmu_rdpmc(struct pmu *pmu, uint32_t ecx, uint64_t *value);

/* Brings the counters up to now. True while an overflow asks for an interrupt, which is the caller's to deliver. */
bool pmu_sync(struct pmu *pmu);
/* The interrupt is delivered; with FREEZE_PERFMON_ON_PMI all counters stop. */
void pmu_delivered(struct pmu *pmu);
/*
 * Whether the guest is in a mode (user or kernel) that the overflowed counters count. Linux takes the mode in which an
 * interrupt finds it for that of the overflow.
 */
bool pmu_interrupt_fits(const struct pmu *pmu, bool user);

/* Whether any counter runs. */
static inline bool pmu_runs(const struct pmu *pmu)
{
	return pmu->running != 0;
}

/* What selects an event: unit mask and event; and the fixed counters that count it, a bit for each. */
uint16_t pmu_event_encoding(enum pmu_event event);
uint32_t pmu_event_fixed(enum pmu_event event);

struct pmu_cpuid {
	uint32_t eax, ebx, ecx, edx;
};
/* Leaf 0xA; `events`: a bit for each enum pmu_event that can be counted. */
struct pmu_cpuid pmu_cpuid(uint32_t events);

#endif
