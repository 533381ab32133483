// SPDX-License-Identifier: BSD-2-Clause
/* When a vCPU's timer interrupts it that is asked for too often. Times are the guest's TSC. */
#include <check.h>

#include "kvm/host/x86/host_pvm_timer.h"
#include "run_suite.h"

#define INTERVAL 1000u

static struct host_pvm_timer timer;

static void set_up(void)
{
	timer = (struct host_pvm_timer){.shortest = INTERVAL, .interval = INTERVAL};
}

static uint64_t deadline(uint64_t now, uint64_t wanted)
{
	return host_pvm_timer_deadline(&timer, now, wanted);
}

START_TEST(rare_interrupts_are_on_time)
{
	ck_assert_uint_eq(deadline(5000, 5100), 5100);
	ck_assert_uint_eq(deadline(5110, 6100), 6100);
	ck_assert_uint_eq(deadline(6110, 9000), 9000);
	ck_assert_uint_eq(deadline(20000, 20001), 20001);
}
END_TEST

START_TEST(frequent_ones_have_an_interval_between_them)
{
	ck_assert_uint_eq(deadline(5000, 5100), 5100);
	ck_assert_uint_eq(deadline(5110, 5200), 6100);
	ck_assert_uint_eq(deadline(6150, 6200), 7100);
	ck_assert_uint_eq(deadline(7100, 7101), 8100);
}
END_TEST

START_TEST(a_tick_that_is_always_wanted_comes_at_the_interval)
{
	uint64_t now = 10000, at = now;

	for (unsigned i = 0; i < 100; i++) {
		now = at + 3;
		at = deadline(now, now + INTERVAL / 5);
	}
	ck_assert_uint_le(at, 10000 + 101 * INTERVAL);
	ck_assert_uint_ge(at, 10000 + 99 * INTERVAL);
}
END_TEST

START_TEST(one_set_anew_before_it_came_has_not_come)
{
	ck_assert_uint_eq(deadline(5000, 5100), 5100);
	ck_assert_uint_eq(deadline(5200, 9000), 9000);
	ck_assert_uint_eq(deadline(5300, 5400), 6100); /* 5100 was the last */
	ck_assert_uint_eq(deadline(5400, 6500), 6500);
}
END_TEST

START_TEST(none_is_wanted)
{
	ck_assert_uint_eq(deadline(5000, 5100), 5100);
	ck_assert_uint_eq(deadline(5200, 0), 0);
	ck_assert_uint_eq(deadline(5300, 5301), 6100);
	ck_assert_uint_eq(deadline(5310, 0), 0);
	ck_assert_uint_eq(deadline(6310, 6311), 6311); /* that of 6100 never came */
}
END_TEST

START_TEST(a_tsc_set_back_delays_by_one_interval)
{
	ck_assert_uint_eq(deadline(500000, 500100), 500100);
	ck_assert_uint_eq(deadline(500200, 500300), 501100);
	ck_assert_uint_eq(deadline(40, 50), 1040);
	ck_assert_uint_eq(deadline(1050, 3000), 3000);
}
END_TEST

START_TEST(no_guest_makes_time_overflow)
{
	timer.last = UINT64_MAX - 10;
	ck_assert_uint_eq(deadline(UINT64_MAX - 5, UINT64_MAX), UINT64_MAX);
	ck_assert_uint_eq(deadline(UINT64_MAX, 1), UINT64_MAX);
}
END_TEST

#define MS UINT64_C(1000000)

START_TEST(the_interval_is_of_the_time_on_a_host_cpu)
{
	host_pvm_timer_share(&timer, 100 * MS, 0);
	ck_assert_uint_eq(timer.interval, INTERVAL);
	host_pvm_timer_share(&timer, 100 * MS + 25 * MS, 75 * MS);
	ck_assert_uint_eq(timer.interval, 4 * INTERVAL);
	ck_assert_uint_eq(deadline(5000, 5100), 5100);
	ck_assert_uint_eq(deadline(5110, 5200), 5100 + 4 * INTERVAL);
	host_pvm_timer_share(&timer, 225 * MS, 75 * MS);
	ck_assert_uint_eq(timer.interval, INTERVAL);
}
END_TEST

START_TEST(a_share_is_of_a_long_time)
{
	host_pvm_timer_share(&timer, 50 * MS, 50 * MS);
	host_pvm_timer_share(&timer, 51 * MS, 148 * MS);
	ck_assert_uint_eq(timer.interval, 2 * INTERVAL);
	host_pvm_timer_share(&timer, 75 * MS, 125 * MS);
	ck_assert_uint_eq(timer.interval, 4 * INTERVAL);
}
END_TEST

START_TEST(a_vcpu_without_a_host_cpu_still_has_a_timer)
{
	host_pvm_timer_share(&timer, 0, 5000 * MS);
	ck_assert_uint_eq(timer.interval, 50 * INTERVAL);
}
END_TEST

/* With any share from 2 % on, a vCPU has 20 ms of a host CPU for each tick. */
START_TEST(a_guest_gets_on_beside_its_ticks)
{
	for (unsigned percent = 2; percent <= 100; percent++) {
		uint64_t wall_ns = 0, ran_ns = 0, ticks = 0, now = 0;

		set_up();
		while (wall_ns < 60000 * MS) {
			uint64_t at = deadline(now, now + 1);

			wall_ns += (at - now) * 20 * MS / INTERVAL;
			ran_ns = wall_ns / 100 * percent;
			now = at;
			ticks++;
			host_pvm_timer_share(&timer, ran_ns, wall_ns - ran_ns);
		}
		ck_assert_uint_le(ticks * 20 * MS, ran_ns + 200 * MS);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host_pvm_timer");
	TCase *tests = tcase_create("host_pvm_timer");

	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_test(tests, rare_interrupts_are_on_time);
	tcase_add_test(tests, frequent_ones_have_an_interval_between_them);
	tcase_add_test(tests, a_tick_that_is_always_wanted_comes_at_the_interval);
	tcase_add_test(tests, one_set_anew_before_it_came_has_not_come);
	tcase_add_test(tests, none_is_wanted);
	tcase_add_test(tests, a_tsc_set_back_delays_by_one_interval);
	tcase_add_test(tests, no_guest_makes_time_overflow);
	tcase_add_test(tests, the_interval_is_of_the_time_on_a_host_cpu);
	tcase_add_test(tests, a_share_is_of_a_long_time);
	tcase_add_test(tests, a_vcpu_without_a_host_cpu_still_has_a_timer);
	tcase_add_test(tests, a_guest_gets_on_beside_its_ticks);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
