// SPDX-License-Identifier: BSD-2-Clause
/* The registers of an emulated PMU against SDM vol. 3B, chapter 20, on a source that the test moves. */
#include <check.h>
#include <string.h>

#include "pmu/x86/pmu.h"
#include "pmu_source.h"
#include "run_suite.h"

#define PMC0 0xc1u
#define SELECT0 0x186u
#define FIXED0 0x309u
#define FIXED_CONTROL 0x38du
#define GLOBAL_STATUS 0x38eu
#define GLOBAL_CONTROL 0x38fu
#define OVERFLOW_CONTROL 0x390u

#define BIT(n) (UINT64_C(1) << (n))
#define WIDTH_MASK (BIT(48) - 1)
#define USER BIT(16)
#define KERNEL BIT(17)
#define INTERRUPT BIT(20)
#define ENABLE BIT(22)
#define CYCLES 0x3cu
#define FREEZE BIT(12)

static struct test_source source;
static struct pmu pmu;

static void set_up(void)
{
	source = (struct test_source){.source.ops = &test_source_ops};
	pmu_init(&pmu, &source.source);
}

static uint64_t get(uint32_t msr)
{
	uint64_t value = 0;

	ck_assert_msg(pmu_read(&pmu, msr, &value), "reading 0x%x", msr);
	return value;
}

static void set(uint32_t msr, uint64_t value)
{
	ck_assert_msg(pmu_write(&pmu, msr, value), "writing 0x%lx to 0x%x", (unsigned long)value, msr);
}

static void refused(uint32_t msr, uint64_t value)
{
	uint64_t before = get(msr);

	ck_assert_msg(!pmu_write(&pmu, msr, value), "0x%x takes 0x%lx", msr, (unsigned long)value);
	ck_assert_uint_eq(get(msr), before);
}

/* Counter 0 counts cycles of both modes. */
static void run_counter_0(uint64_t more)
{
	set(SELECT0, CYCLES | USER | KERNEL | ENABLE | more);
	set(GLOBAL_CONTROL, 1);
	ck_assert(source.counters[0].running);
}

static void check_power_up(void)
{
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(get(PMC0 + i), 0);
		ck_assert_uint_eq(get(SELECT0 + i), 0);
	}
	ck_assert_uint_eq(get(FIXED_CONTROL), 0);
	ck_assert_uint_eq(get(GLOBAL_STATUS), 0);
	ck_assert_uint_eq(get(GLOBAL_CONTROL), 0xf); /* SDM vol. 3A, table 10-1 */
	ck_assert(!pmu_runs(&pmu));
}

START_TEST(power_up)
{
	check_power_up();
}
END_TEST

START_TEST(reserved_bits)
{
	for (uint32_t i = 0; i < 4; i++) {
		set(SELECT0 + i, 0xffdfffff & ~ENABLE);
		refused(SELECT0 + i, BIT(21)); /* AnyThread is version 3's */
		for (unsigned bit = 32; bit < 64; bit++)
			refused(SELECT0 + i, BIT(bit));
	}
	for (uint32_t i = 0; i < 3; i++) {
		set(FIXED0 + i, WIDTH_MASK);
		refused(FIXED0 + i, BIT(48));
		refused(FIXED0 + i, BIT(63));
	}
	set(FIXED_CONTROL, 0xbbb);
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(UINT64_C(0xbbb) >> bit & 1))
			refused(FIXED_CONTROL, BIT(bit));
		if (!(UINT64_C(0x70000000f) >> bit & 1))
			refused(GLOBAL_CONTROL, BIT(bit));
		if (!(UINT64_C(0xc00000070000000f) >> bit & 1))
			refused(OVERFLOW_CONTROL, BIT(bit));
		refused(GLOBAL_STATUS, BIT(bit));
	}
}
END_TEST

START_TEST(no_other_msr)
{
	uint64_t value;
	static const uint32_t others[] = {0xc0,  0xc5,  0x185, 0x18a, 0x1d9, 0x308,      0x30c,
	                                  0x345, 0x38c, 0x391, 0x4c1, 0x3f1, 0xc0010000, UINT32_MAX};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		ck_assert(!pmu_read(&pmu, others[i], &value));
		ck_assert(!pmu_write(&pmu, others[i], 0));
	}
}
END_TEST

START_TEST(general_counters_spread_bit_31)
{
	set(PMC0, 0x7fffffff);
	ck_assert_uint_eq(get(PMC0), 0x7fffffff);
	set(PMC0, 0x80000000);
	ck_assert_uint_eq(get(PMC0), 0xffff80000000);
	set(PMC0, UINT64_C(0x123400000001)); /* above bit 31 nothing is taken */
	ck_assert_uint_eq(get(PMC0), 1);
	set(FIXED0, UINT64_C(0x123400000001));
	ck_assert_uint_eq(get(FIXED0), UINT64_C(0x123400000001));
}
END_TEST

START_TEST(enable_takes_both_registers)
{
	set(GLOBAL_CONTROL, 0);
	set(SELECT0 + 2, CYCLES | USER | ENABLE);
	ck_assert(!pmu_runs(&pmu));
	set(GLOBAL_CONTROL, 4);
	ck_assert(source.counters[2].running);
	ck_assert(source.counters[2].what.user && !source.counters[2].what.kernel);
	ck_assert_int_eq(source.counters[2].what.event, PMU_EVENT_CYCLES);
	set(SELECT0 + 2, CYCLES | USER);
	ck_assert(!pmu_runs(&pmu));
	set(SELECT0 + 2, CYCLES | ENABLE); /* in no mode at all */
	ck_assert(!pmu_runs(&pmu));
}
END_TEST

START_TEST(fixed_counters)
{
	static const enum pmu_event events[] = {PMU_EVENT_INSTRUCTIONS, PMU_EVENT_CYCLES, PMU_EVENT_REF_CYCLES};

	set(FIXED_CONTROL, 0x321);
	ck_assert(!pmu_runs(&pmu));
	set(GLOBAL_CONTROL, 7 * BIT(32));
	for (unsigned i = 0; i < 3; i++) {
		const struct test_counter *one = &source.counters[PMU_GENERAL + i];

		ck_assert(one->running);
		ck_assert_int_eq(one->what.event, events[i]);
		ck_assert_int_eq(one->what.kernel, i != 1);
		ck_assert_int_eq(one->what.user, i != 0);
		ck_assert_uint_eq(pmu_event_fixed(events[i]), 1u << i);
	}
}
END_TEST

START_TEST(events)
{
	static const struct {
		uint64_t select;
		enum pmu_event event;
	} rows[] = {{0x013c, PMU_EVENT_REF_CYCLES},           {0x4f2e, PMU_EVENT_LLC_REFERENCES},
	            {0x00c5, PMU_EVENT_BRANCH_MISSES},        {0x01c2, PMU_EVENT_RAW},
	            {0x3c | BIT(18), PMU_EVENT_RAW},            /* edges of cycles */
	            {0xc0 | BIT(23) | BIT(28), PMU_EVENT_RAW}}; /* cycles in which few instructions retired */
	set(GLOBAL_CONTROL, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set(SELECT0, rows[i].select | KERNEL | ENABLE);
		ck_assert_int_eq(source.counters[0].what.event, rows[i].event);
		ck_assert_uint_eq(source.counters[0].what.raw,
		                  rows[i].event == PMU_EVENT_RAW ? (uint32_t)rows[i].select : 0);
	}
}
END_TEST

START_TEST(a_counter_that_nobody_drives_stands)
{
	source.refuses = true;
	set(PMC0, 7);
	set(SELECT0, CYCLES | USER | ENABLE);
	ck_assert(!pmu_runs(&pmu));
	ck_assert_uint_eq(get(PMC0), 7);
	ck_assert(!pmu_sync(&pmu));
}
END_TEST

START_TEST(counts)
{
	run_counter_0(0);
	source.counters[0].counted = 1000;
	ck_assert_uint_eq(get(PMC0), 1000);
	source.counters[0].counted = 1;
	set(GLOBAL_CONTROL, 0); /* what was counted until it stopped is in */
	ck_assert_uint_eq(get(PMC0), 1001);
	ck_assert_uint_eq(source.stops, 1);
}
END_TEST

START_TEST(writing_a_running_counter)
{
	run_counter_0(0);
	source.counters[0].counted = 12345;
	set(PMC0, -UINT64_C(100));
	ck_assert_uint_eq(get(PMC0), WIDTH_MASK - 99);
	ck_assert_uint_eq(source.counters[0].left, 100);
	ck_assert_uint_eq(source.starts, 1); /* it is the same counting */
}
END_TEST

START_TEST(wraps_at_48_bits)
{
	set(PMC0, -UINT64_C(5));
	run_counter_0(0);
	ck_assert_uint_eq(source.counters[0].left, 5);
	source.counters[0].counted = 4;
	ck_assert_uint_eq(get(PMC0), WIDTH_MASK);
	ck_assert_uint_eq(get(GLOBAL_STATUS), 0);
	source.counters[0].counted = 1;
	ck_assert_uint_eq(get(PMC0), 0);
	ck_assert_uint_eq(get(GLOBAL_STATUS), 1);
	ck_assert_uint_eq(source.counters[0].left, BIT(48));
	ck_assert(!pmu_sync(&pmu)); /* INT is not set */
}
END_TEST

START_TEST(interrupts_once)
{
	set(PMC0, -UINT64_C(5));
	run_counter_0(INTERRUPT);
	ck_assert(!pmu_sync(&pmu));
	source.counters[0].counted = 9;
	ck_assert(pmu_sync(&pmu));
	ck_assert(pmu_sync(&pmu)); /* it waits until it is delivered */
	pmu_delivered(&pmu);
	ck_assert(!pmu_sync(&pmu));
	ck_assert_uint_eq(get(PMC0), 4);
	ck_assert_uint_eq(get(GLOBAL_STATUS), 1);
}
END_TEST

START_TEST(an_overflow_that_the_guest_has_seen_interrupts_no_more)
{
	set(PMC0, WIDTH_MASK);
	set(FIXED0 + 1, WIDTH_MASK);
	set(FIXED_CONTROL, 0xb0);
	run_counter_0(INTERRUPT);
	set(GLOBAL_CONTROL, 1 | BIT(33));
	source.counters[0].counted = source.counters[PMU_GENERAL + 1].counted = 1;
	ck_assert(pmu_sync(&pmu));
	set(OVERFLOW_CONTROL, 1);
	ck_assert(pmu_sync(&pmu));
	set(OVERFLOW_CONTROL, BIT(33));
	ck_assert(!pmu_sync(&pmu));
	set(PMC0, WIDTH_MASK);
	source.counters[0].counted = 1;
	ck_assert(pmu_sync(&pmu));
	set(SELECT0, 0); /* its event has been closed */
	ck_assert(!pmu_sync(&pmu));
}
END_TEST

/* Overflow of counter 0, which counts `select`'s modes, and of a fixed one, which counts `fixed`'s (0: does not run).
 */
static void overflow(uint64_t select, uint64_t fixed)
{
	set_up();
	set(PMC0, WIDTH_MASK);
	set(FIXED0 + 1, WIDTH_MASK);
	set(FIXED_CONTROL, fixed << 4);
	set(SELECT0, CYCLES | ENABLE | INTERRUPT | select);
	set(GLOBAL_CONTROL, 1 | BIT(33));
	source.counters[0].counted = source.counters[PMU_GENERAL + 1].counted = 1;
	ck_assert(pmu_sync(&pmu));
}

START_TEST(an_interrupt_fits_the_mode_that_was_counted)
{
	static const struct {
		uint64_t select, fixed;
		bool in_user, in_kernel;
	} rows[] = {
		{USER | KERNEL, 0, true, true}, {USER, 0, true, false},     {KERNEL, 0, false, true},
		{USER, 0xb, true, false},       {KERNEL, 0xb, false, true}, {USER, 0x9, true, true},
		{USER, 0x1, true, false}, /* that of the kernel asks for no interrupt */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		overflow(rows[i].select, rows[i].fixed);
		ck_assert_int_eq(pmu_interrupt_fits(&pmu, true), rows[i].in_user);
		ck_assert_int_eq(pmu_interrupt_fits(&pmu, false), rows[i].in_kernel);
	}
}
END_TEST

START_TEST(periods_that_go_by_before_the_guest_answers_are_counted)
{
	set(PMC0, -UINT64_C(100));
	run_counter_0(INTERRUPT);
	source.counters[0].counted = 100 + 99;
	set(PMC0, -UINT64_C(1)); /* the rest of the period, as Linux has it */
	ck_assert_uint_eq(pmu.merged, 0);
	source.counters[0].counted = 1 + 350;
	set(PMC0, -UINT64_C(50));
	ck_assert_uint_eq(pmu.merged, 3);
	source.counters[0].counted = 20; /* no overflow */
	set(PMC0, -UINT64_C(100));
	ck_assert_uint_eq(pmu.merged, 3);
}
END_TEST

START_TEST(an_overflow_that_a_read_finds_interrupts_too)
{
	uint64_t value;

	set(FIXED0 + 1, WIDTH_MASK);
	set(FIXED_CONTROL, 0xb0);
	set(GLOBAL_CONTROL, BIT(33));
	source.counters[PMU_GENERAL + 1].counted = 1;
	ck_assert(pmu_rdpmc(&pmu, 0x40000001, &value));
	ck_assert_uint_eq(value, 0);
	ck_assert_uint_eq(get(GLOBAL_STATUS), BIT(33));
	ck_assert(pmu_sync(&pmu));
}
END_TEST

START_TEST(overflow_control_clears_what_it_names)
{
	set(PMC0, WIDTH_MASK);
	set(FIXED0 + 2, WIDTH_MASK);
	set(FIXED_CONTROL, 0x300);
	set(SELECT0, CYCLES | USER | ENABLE);
	set(GLOBAL_CONTROL, 1 | BIT(34));
	source.counters[0].counted = source.counters[PMU_GENERAL + 2].counted = 1;
	ck_assert_uint_eq(get(GLOBAL_STATUS), 1 | BIT(34));
	set(OVERFLOW_CONTROL, 2 | BIT(62) | BIT(63));
	ck_assert_uint_eq(get(GLOBAL_STATUS), 1 | BIT(34));
	set(OVERFLOW_CONTROL, BIT(34));
	ck_assert_uint_eq(get(GLOBAL_STATUS), 1);
	set(OVERFLOW_CONTROL, 1);
	ck_assert_uint_eq(get(GLOBAL_STATUS), 0);
	ck_assert_uint_eq(get(OVERFLOW_CONTROL), 0);
}
END_TEST

START_TEST(freezes_on_an_interrupt)
{
	pmu_debugctl_write(&pmu, FREEZE | 1 | BIT(63));
	ck_assert_uint_eq(pmu_debugctl_read(&pmu), FREEZE);
	set(PMC0, WIDTH_MASK);
	run_counter_0(0);
	source.counters[0].counted = 1;
	ck_assert(!pmu_sync(&pmu)); /* without INT, nothing freezes */
	ck_assert_uint_eq(get(GLOBAL_CONTROL), 1);
	set(PMC0, WIDTH_MASK);
	set(SELECT0, CYCLES | USER | KERNEL | ENABLE | INTERRUPT);
	source.counters[0].counted = 1;
	ck_assert(pmu_sync(&pmu));
	ck_assert_uint_eq(get(GLOBAL_CONTROL), 1);
	pmu_delivered(&pmu);
	ck_assert_uint_eq(get(GLOBAL_CONTROL), 0);
	ck_assert(!pmu_runs(&pmu));
	ck_assert(!source.counters[0].running);
}
END_TEST

START_TEST(rdpmc)
{
	uint64_t value = 0;
	static const uint32_t bad[] = {4, 0x40000003, 0x80000000, 0x20000000, UINT32_MAX};

	set(PMC0 + 3, 33);
	set(FIXED0 + 2, WIDTH_MASK);
	ck_assert(pmu_rdpmc(&pmu, 3, &value));
	ck_assert_uint_eq(value, 33);
	ck_assert(pmu_rdpmc(&pmu, 0x40000002, &value));
	ck_assert_uint_eq(value, WIDTH_MASK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert(!pmu_rdpmc(&pmu, bad[i], &value));
}
END_TEST

START_TEST(save_and_load)
{
	struct pmu_state state, again;

	set(PMC0, 10);
	set(FIXED0 + 1, WIDTH_MASK);
	set(FIXED_CONTROL, 0xb0);
	pmu_debugctl_write(&pmu, FREEZE);
	run_counter_0(INTERRUPT);
	set(GLOBAL_CONTROL, 1 | BIT(33));
	source.counters[0].counted = 5;
	source.counters[PMU_GENERAL + 1].counted = 1;
	pmu_save(&pmu, &state);
	ck_assert_uint_eq(state.counter[0], 15);
	ck_assert_uint_eq(state.global_status, BIT(33));

	set_up();
	ck_assert(pmu_load(&pmu, &state));
	ck_assert(source.counters[0].running && source.counters[PMU_GENERAL + 1].running);
	pmu_save(&pmu, &again);
	ck_assert_mem_eq(&again, &state, sizeof(state));
	ck_assert(pmu_sync(&pmu)); /* the interrupt was on its way */

	pmu_reset(&pmu);
	ck_assert(!source.counters[0].running);
	check_power_up();
}
END_TEST

START_TEST(load_refuses_what_no_guest_can_write)
{
	struct pmu_state good, bad[6];

	set(PMC0, 77);
	pmu_save(&pmu, &good);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good;
	bad[0].select[3] = BIT(40);
	bad[1].counter[6] = BIT(48);
	bad[2].fixed_control = 4;
	bad[3].global_control = BIT(20);
	bad[4].global_status = BIT(20);
	bad[5].debugctl = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert(!pmu_load(&pmu, &bad[i]));
		ck_assert_uint_eq(get(PMC0), 77);
	}
}
END_TEST

START_TEST(cpuid)
{
	struct pmu_cpuid all = pmu_cpuid(0x7f), clocks = pmu_cpuid(0x5);

	ck_assert_uint_eq(all.eax, 0x07300402);
	ck_assert_uint_eq(all.ebx, 0);
	ck_assert_uint_eq(all.ecx, 0);
	ck_assert_uint_eq(all.edx, 0x603);
	ck_assert_uint_eq(clocks.ebx, 0x7a);
}
END_TEST

START_TEST(ranges_cover_every_register)
{
	unsigned found = 0;

	for (size_t i = 0; i < pmu_msr_ranges_n; i++) {
		for (uint32_t msr = pmu_msr_ranges[i].first; msr <= pmu_msr_ranges[i].last; msr++) {
			uint64_t value;

			ck_assert(msr == PMU_MSR_DEBUGCTL || pmu_read(&pmu, msr, &value));
			found++;
		}
	}
	ck_assert_uint_eq(found, 4 + 4 + 3 + 4 + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmu");
	TCase *test = tcase_create("pmu");
	tcase_add_checked_fixture(test, set_up, NULL);
	tcase_add_test(test, power_up);
	tcase_add_test(test, reserved_bits);
	tcase_add_test(test, no_other_msr);
	tcase_add_test(test, general_counters_spread_bit_31);
	tcase_add_test(test, enable_takes_both_registers);
	tcase_add_test(test, fixed_counters);
	tcase_add_test(test, events);
	tcase_add_test(test, a_counter_that_nobody_drives_stands);
	tcase_add_test(test, counts);
	tcase_add_test(test, writing_a_running_counter);
	tcase_add_test(test, wraps_at_48_bits);
	tcase_add_test(test, interrupts_once);
	tcase_add_test(test, an_overflow_that_a_read_finds_interrupts_too);
	tcase_add_test(test, overflow_control_clears_what_it_names);
	tcase_add_test(test, freezes_on_an_interrupt);
	tcase_add_test(test, an_overflow_that_the_guest_has_seen_interrupts_no_more);
	tcase_add_test(test, an_interrupt_fits_the_mode_that_was_counted);
	tcase_add_test(test, periods_that_go_by_before_the_guest_answers_are_counted);
	tcase_add_test(test, rdpmc);
	tcase_add_test(test, save_and_load);
	tcase_add_test(test, load_refuses_what_no_guest_can_write);
	tcase_add_test(test, cpuid);
	tcase_add_test(test, ranges_cover_every_register);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
