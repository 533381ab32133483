// SPDX-License-Identifier: BSD-2-Clause
/* The registers. Section and table numbers are those of the SDM, vol. 3B, chapter 20, unless they say otherwise. */
#include "pmu/x86/pmu.h"

#include <string.h>

#include "pmu/x86/source.h"

#define BIT(n) (UINT64_C(1) << (n))
#define COUNTER_MASK (BIT(PMU_WIDTH) - 1)

/* IA32_PERFEVTSELx, figure 20-6. Version 2 has no AnyThread (bit 21). */
#define SELECT_EVENT UINT64_C(0xffff) /* event and unit mask */
#define SELECT_USER BIT(16)
#define SELECT_KERNEL BIT(17)
#define SELECT_EDGE BIT(18)
#define SELECT_INTERRUPT BIT(20)
#define SELECT_ENABLE BIT(22)
#define SELECT_INVERT BIT(23)
#define SELECT_COUNTER_MASK UINT64_C(0xff000000)
#define SELECT_MODIFIERS (SELECT_EDGE | SELECT_INVERT | SELECT_COUNTER_MASK)
#define SELECT_RESERVED (UINT64_C(0xffffffff00000000) | BIT(21))

/* IA32_FIXED_CTR_CTRL, figure 20-2: four bits for each counter, without the third (AnyThread) in version 2. */
#define FIXED_KERNEL 1u
#define FIXED_USER 2u
#define FIXED_INTERRUPT 8u
#define FIXED_RESERVED (~UINT64_C(0xbbb))

/* IA32_PERF_GLOBAL_CTRL, _STATUS and _OVF_CTRL, figures 20-3 and 20-5: fixed counters from bit 32 on. */
#define GLOBAL_FIXED 32u
#define GLOBAL_COUNTERS ((BIT(PMU_GENERAL) - 1) | (BIT(PMU_FIXED) - 1) << GLOBAL_FIXED)
#define GLOBAL_BUFFER_OVERFLOW BIT(62)
#define GLOBAL_CONDITION_CHANGED BIT(63)
#define OVERFLOW_CONTROL_BITS (GLOBAL_COUNTERS | GLOBAL_BUFFER_OVERFLOW | GLOBAL_CONDITION_CHANGED)

/* SDM vol. 3A, table 10-1: after power-up the general counters wait for their own enable bits only. */
#define GLOBAL_CONTROL_RESET (BIT(PMU_GENERAL) - 1)

/* RDPMC, SDM vol. 2B: ECX has the kind of counter in bits 31:30 and its index below. */
#define RDPMC_FIXED 0x40000000u

/* MSRs, SDM vol. 4, table 2-2. */
enum {
	MSR_PMC0 = 0xc1,
	MSR_PERFEVTSEL0 = 0x186,
	MSR_FIXED_CTR0 = 0x309,
	MSR_FIXED_CTR_CTRL = 0x38d,
	MSR_GLOBAL_STATUS = 0x38e,
};

const struct pmu_msr_range pmu_msr_ranges[] = {
	{MSR_PMC0, MSR_PMC0 + PMU_GENERAL - 1},
	{MSR_PERFEVTSEL0, MSR_PERFEVTSEL0 + PMU_GENERAL - 1},
	{MSR_FIXED_CTR0, MSR_FIXED_CTR0 + PMU_FIXED - 1},
	{MSR_FIXED_CTR_CTRL, PMU_MSR_GLOBAL_OVF_CTRL},
	{PMU_MSR_DEBUGCTL, PMU_MSR_DEBUGCTL},
};
const size_t pmu_msr_ranges_n = sizeof(pmu_msr_ranges) / sizeof(pmu_msr_ranges[0]);

/* Table 20-1; the fixed counters count the first three, in the order of enum fixed (20.2.2). */
static const uint16_t encodings[PMU_EVENTS] = {
	[PMU_EVENT_CYCLES] = 0x003c,         [PMU_EVENT_INSTRUCTIONS] = 0x00c0, [PMU_EVENT_REF_CYCLES] = 0x013c,
	[PMU_EVENT_LLC_REFERENCES] = 0x4f2e, [PMU_EVENT_LLC_MISSES] = 0x412e,   [PMU_EVENT_BRANCHES] = 0x00c4,
	[PMU_EVENT_BRANCH_MISSES] = 0x00c5,
};
static const enum pmu_event fixed_events[PMU_FIXED] = {PMU_EVENT_INSTRUCTIONS, PMU_EVENT_CYCLES, PMU_EVENT_REF_CYCLES};

uint16_t pmu_event_encoding(enum pmu_event event)
{
	return encodings[event];
}

uint32_t pmu_event_fixed(enum pmu_event event)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < PMU_FIXED; i++)
		bits |= (uint32_t)(fixed_events[i] == event) << i;
	return bits;
}

static bool is_fixed(unsigned counter)
{
	return counter >= PMU_GENERAL;
}

/* Its bit in the global registers. */
static uint64_t global_bit(unsigned counter)
{
	return BIT(is_fixed(counter) ? GLOBAL_FIXED + counter - PMU_GENERAL : counter);
}

static unsigned fixed_bits(const struct pmu_state *state, unsigned counter)
{
	return (unsigned)(state->fixed_control >> 4 * (counter - PMU_GENERAL)) & 0xf;
}

static bool wants_interrupt(const struct pmu_state *state, unsigned counter)
{
	return is_fixed(counter) ? (fixed_bits(state, counter) & FIXED_INTERRUPT) != 0
	                         : (state->select[counter] & SELECT_INTERRUPT) != 0;
}

/* A bit for each counter whose overflow asks for an interrupt, and that the guest has not acknowledged. */
static uint32_t interrupting(const struct pmu_state *state)
{
	uint32_t counters = 0;

	for (unsigned counter = 0; counter < PMU_COUNTERS; counter++) {
		if ((state->global_status & global_bit(counter)) != 0 && wants_interrupt(state, counter))
			counters |= 1u << counter;
	}
	return counters;
}

static void decode_select(uint64_t select, struct pmu_counting *what)
{
	*what = (struct pmu_counting){.event = PMU_EVENT_RAW,
	                              .raw = (uint32_t)(select & (SELECT_EVENT | SELECT_MODIFIERS)),
	                              .user = (select & SELECT_USER) != 0,
	                              .kernel = (select & SELECT_KERNEL) != 0};
	for (unsigned event = 0; event < PMU_EVENTS; event++) {
		if (what->raw == encodings[event]) {
			what->event = (enum pmu_event)event;
			what->raw = 0;
		}
	}
}

/* The event that the registers select; false: none. */
static bool wanted(const struct pmu_state *state, unsigned counter, struct pmu_counting *what)
{
	bool enabled = (state->global_control & global_bit(counter)) != 0;

	if (is_fixed(counter)) {
		unsigned bits = fixed_bits(state, counter);

		*what = (struct pmu_counting){.event = fixed_events[counter - PMU_GENERAL],
		                              .user = (bits & FIXED_USER) != 0,
		                              .kernel = (bits & FIXED_KERNEL) != 0};
	} else {
		decode_select(state->select[counter], what);
		enabled = enabled && (state->select[counter] & SELECT_ENABLE) != 0;
	}
	return enabled && (what->user || what->kernel);
}

static uint64_t left(const struct pmu *pmu, unsigned counter)
{
	return BIT(PMU_WIDTH) - pmu->state.counter[counter];
}

static bool runs(const struct pmu *pmu, unsigned counter)
{
	return (pmu->running >> counter & 1) != 0;
}

static void stop(struct pmu *pmu, unsigned counter)
{
	if (runs(pmu, counter))
		pmu->source->ops->stop(pmu->source, counter);
	pmu->running &= ~(1u << counter);
}

static bool same(const struct pmu_counting *a, const struct pmu_counting *b)
{
	return a->event == b->event && a->raw == b->raw && a->user == b->user && a->kernel == b->kernel;
}

/* Makes the source count what the registers select. */
static void apply(struct pmu *pmu)
{
	for (unsigned counter = 0; counter < PMU_COUNTERS; counter++) {
		struct pmu_counting what;
		bool on = wanted(&pmu->state, counter, &what);

		if (runs(pmu, counter) && on && same(&what, &pmu->counting[counter]))
			continue;
		stop(pmu, counter);
		if (!on || !pmu->source->ops->start(pmu->source, counter, &what, left(pmu, counter)))
			continue;
		if (!same(&what, &pmu->counting[counter]))
			pmu->period[counter] = left(pmu, counter);
		pmu->counting[counter] = what;
		pmu->running |= 1u << counter;
	}
}

/* Adds what was counted; notes an overflow and tells the source the next one. */
static void account(struct pmu *pmu, unsigned counter)
{
	if (!runs(pmu, counter))
		return;
	uint64_t *value = &pmu->state.counter[counter];
	uint64_t counted = pmu->source->ops->take(pmu->source, counter);
	bool overflowed = counted >= left(pmu, counter);
	*value = (*value + counted) & COUNTER_MASK;
	if (!overflowed)
		return;
	pmu->overflowed |= 1u << counter;
	pmu->state.global_status |= global_bit(counter);
	pmu->state.interrupt |= wants_interrupt(&pmu->state, counter);
	pmu->source->ops->aim(pmu->source, counter, left(pmu, counter));
}

static void account_all(struct pmu *pmu)
{
	for (unsigned counter = 0; counter < PMU_COUNTERS; counter++)
		account(pmu, counter);
}

/* The guest begins a new period; what the counter has counted since its overflow may have been whole ones. */
static void begin_period(struct pmu *pmu, unsigned counter, uint64_t since_overflow)
{
	pmu->period[counter] = pmu->period[counter] > left(pmu, counter) ? pmu->period[counter] : left(pmu, counter);
	if ((pmu->overflowed >> counter & 1) != 0)
		pmu->merged += since_overflow / pmu->period[counter];
	pmu->overflowed &= ~(1u << counter);
}

static void set_counter(struct pmu *pmu, unsigned counter, uint64_t value)
{
	uint64_t before = pmu->state.counter[counter];

	pmu->state.counter[counter] = value;
	begin_period(pmu, counter, before);
	if (runs(pmu, counter))
		pmu->source->ops->aim(pmu->source, counter, left(pmu, counter));
}

/* ---- one function for each kind of register; `i` is its index. False: reserved bits ---- */

static uint64_t read_counter(const struct pmu *pmu, unsigned i)
{
	return pmu->state.counter[i];
}

/* Without full-width writes (IA32_PERF_CAPABILITIES), bits 31:0 are taken and bit 31 is spread (20.2.8). */
static bool write_general(struct pmu *pmu, unsigned i, uint64_t value)
{
	set_counter(pmu, i, (uint64_t)(int64_t)(int32_t)(uint32_t)value & COUNTER_MASK);
	return true;
}

static uint64_t read_fixed(const struct pmu *pmu, unsigned i)
{
	return read_counter(pmu, PMU_GENERAL + i);
}

static bool write_fixed(struct pmu *pmu, unsigned i, uint64_t value)
{
	if (value & ~COUNTER_MASK)
		return false;
	set_counter(pmu, PMU_GENERAL + i, value);
	return true;
}

static uint64_t read_select(const struct pmu *pmu, unsigned i)
{
	return pmu->state.select[i];
}

static bool write_select(struct pmu *pmu, unsigned i, uint64_t value)
{
	if (value & SELECT_RESERVED)
		return false;
	pmu->state.select[i] = value;
	return true;
}

static uint64_t read_fixed_control(const struct pmu *pmu, unsigned i)
{
	(void)i;
	return pmu->state.fixed_control;
}

static bool write_fixed_control(struct pmu *pmu, unsigned i, uint64_t value)
{
	(void)i;
	if (value & FIXED_RESERVED)
		return false;
	pmu->state.fixed_control = value;
	return true;
}

static uint64_t read_global_status(const struct pmu *pmu, unsigned i)
{
	(void)i;
	return pmu->state.global_status;
}

/* Read-only until version 4. */
static bool write_global_status(struct pmu *pmu, unsigned i, uint64_t value)
{
	(void)pmu;
	(void)i;
	(void)value;
	return false;
}

static uint64_t read_global_control(const struct pmu *pmu, unsigned i)
{
	(void)i;
	return pmu->state.global_control;
}

static bool write_global_control(struct pmu *pmu, unsigned i, uint64_t value)
{
	(void)i;
	if (value & ~GLOBAL_COUNTERS)
		return false;
	pmu->state.global_control = value;
	return true;
}

static uint64_t read_overflow_control(const struct pmu *pmu, unsigned i)
{
	(void)pmu;
	(void)i;
	return 0;
}

static bool write_overflow_control(struct pmu *pmu, unsigned i, uint64_t value)
{
	(void)i;
	if (value & ~OVERFLOW_CONTROL_BITS)
		return false;
	pmu->state.global_status &= ~value;
	return true;
}

static const struct msr {
	uint32_t first, n;
	uint64_t (*read)(const struct pmu *pmu, unsigned i);
	bool (*write)(struct pmu *pmu, unsigned i, uint64_t value);
} msrs[] = {
	{MSR_PMC0, PMU_GENERAL, read_counter, write_general},
	{MSR_PERFEVTSEL0, PMU_GENERAL, read_select, write_select},
	{MSR_FIXED_CTR0, PMU_FIXED, read_fixed, write_fixed},
	{MSR_FIXED_CTR_CTRL, 1, read_fixed_control, write_fixed_control},
	{MSR_GLOBAL_STATUS, 1, read_global_status, write_global_status},
	{PMU_MSR_GLOBAL_CTRL, 1, read_global_control, write_global_control},
	{PMU_MSR_GLOBAL_OVF_CTRL, 1, read_overflow_control, write_overflow_control},
};

static const struct msr *msr_find(uint32_t index)
{
	for (size_t i = 0; i < sizeof(msrs) / sizeof(msrs[0]); i++) {
		if (index - msrs[i].first < msrs[i].n)
			return &msrs[i];
	}
	return NULL;
}

bool pmu_read(struct pmu *pmu, uint32_t msr, uint64_t *value)
{
	const struct msr *found = msr_find(msr);

	if (!found)
		return false;
	account_all(pmu);
	*value = found->read(pmu, msr - found->first);
	return true;
}

bool pmu_write(struct pmu *pmu, uint32_t msr, uint64_t value)
{
	const struct msr *found = msr_find(msr);

	if (!found)
		return false;
	account_all(pmu);
	bool done = found->write(pmu, msr - found->first, value);
	/* The guest has acknowledged the overflow, or wants no interrupt of it any more. */
	pmu->state.interrupt &= interrupting(&pmu->state) != 0;
	apply(pmu);
	return done;
}

uint64_t pmu_debugctl_read(const struct pmu *pmu)
{
	return pmu->state.debugctl;
}

void pmu_debugctl_write(struct pmu *pmu, uint64_t value)
{
	pmu->state.debugctl = value & PMU_DEBUGCTL_BITS;
}

bool pmu_rdpmc(struct pmu *pmu, uint32_t ecx, uint64_t *value)
{
	bool fixed = (ecx & RDPMC_FIXED) != 0;
	uint32_t index = ecx & ~RDPMC_FIXED;

	if (index >= (fixed ? PMU_FIXED : PMU_GENERAL))
		return false;
	unsigned counter = fixed ? PMU_GENERAL + index : index;
	account(pmu, counter);
	*value = pmu->state.counter[counter];
	return true;
}

bool pmu_sync(struct pmu *pmu)
{
	account_all(pmu);
	return pmu->state.interrupt;
}

void pmu_delivered(struct pmu *pmu)
{
	pmu->state.interrupt = false;
	/* 18.4.7 "Freezing LBR and Performance Counters on PMI": before version 4 it clears the global enable bits. */
	if (pmu->state.debugctl) {
		pmu->state.global_control = 0;
		apply(pmu);
	}
}

bool pmu_interrupt_fits(const struct pmu *pmu, bool user)
{
	uint32_t counters = interrupting(&pmu->state);
	bool in_user = true, in_kernel = true;

	for (unsigned counter = 0; counter < PMU_COUNTERS; counter++) {
		if ((counters >> counter & 1) == 0)
			continue;
		in_user &= pmu->counting[counter].user;
		in_kernel &= pmu->counting[counter].kernel;
	}
	/* One of each: no mode is right for both. */
	return in_user == in_kernel || (user ? in_user : in_kernel);
}

/* ---- the whole state ---- */

static bool valid(const struct pmu_state *state)
{
	uint64_t bad = (state->fixed_control & FIXED_RESERVED) | (state->global_control & ~GLOBAL_COUNTERS) |
	               (state->global_status & ~OVERFLOW_CONTROL_BITS) | (state->debugctl & ~PMU_DEBUGCTL_BITS);

	for (unsigned i = 0; i < PMU_GENERAL; i++)
		bad |= state->select[i] & SELECT_RESERVED;
	for (unsigned i = 0; i < PMU_COUNTERS; i++)
		bad |= state->counter[i] & ~COUNTER_MASK;
	return bad == 0;
}

void pmu_save(struct pmu *pmu, struct pmu_state *state)
{
	account_all(pmu);
	*state = pmu->state;
}

bool pmu_load(struct pmu *pmu, const struct pmu_state *state)
{
	if (!valid(state))
		return false;
	for (unsigned counter = 0; counter < PMU_COUNTERS; counter++)
		stop(pmu, counter);
	pmu->state = *state;
	apply(pmu);
	return true;
}

void pmu_reset(struct pmu *pmu)
{
	const struct pmu_state power_up = {.global_control = GLOBAL_CONTROL_RESET};

	pmu_load(pmu, &power_up);
}

void pmu_init(struct pmu *pmu, struct pmu_source *source)
{
	*pmu = (struct pmu){.source = source};
	pmu_reset(pmu);
}

/* SDM vol. 2A, CPUID: an event with its bit in EBX set is not available. */
struct pmu_cpuid pmu_cpuid(uint32_t events)
{
	return (struct pmu_cpuid){.eax = 2u | PMU_GENERAL << 8 | PMU_WIDTH << 16 | (uint32_t)PMU_EVENTS << 24,
	                          .ebx = ~events & ((1u << PMU_EVENTS) - 1),
	                          .edx = PMU_FIXED | PMU_WIDTH << 5};
}
