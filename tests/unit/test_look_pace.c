// SPDX-License-Identifier: BSD-2-Clause
/* How often a guest without a kernel is searched. */
#include <check.h>

#include "attach/look_pace.h"
#include "run_suite.h"

#define S INT64_C(1000000)

static struct look_pace pace;
static const uint64_t mark = 7, other = 8;

static void setup(void)
{
	pace = (struct look_pace){0};
}

/* The seconds after the last search when the next one is due. */
static int64_t pause_of(const uint64_t *marks, size_t n)
{
	int64_t pause_s = 0;

	while (!look_pace_due(&pace, pace.ended_us + pause_s * S, marks, n))
		pause_s++;
	return pause_s;
}

START_TEST(pauses_grow_to_five_minutes)
{
	static const int64_t expected[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};

	ck_assert(look_pace_due(&pace, 0, &mark, 1));
	for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
		look_pace_failed(&pace, (int64_t)i * 1000 * S, 1000, &mark, 1, false);
		ck_assert_int_eq(pause_of(&mark, 1), expected[i]);
	}
}
END_TEST

/* Also where a vCPU goes to and fro between two of them. */
START_TEST(what_is_new_is_searched_after_a_second)
{
	const uint64_t both[] = {mark, other};

	for (unsigned i = 0; i < 5; i++)
		look_pace_failed(&pace, 0, 1000, &mark, 1, false);
	ck_assert_int_eq(pause_of(&mark, 1), 16);
	ck_assert_int_eq(pause_of(&other, 1), 1);
	ck_assert_int_eq(pause_of(both, 2), 1);
	look_pace_failed(&pace, 0, 1000, both, 2, false);
	look_pace_failed(&pace, 0, 1000, &mark, 1, false);
	look_pace_failed(&pace, 0, 1000, &other, 1, false);
	ck_assert_int_eq(pause_of(&mark, 1), 4);
	ck_assert_int_eq(pause_of(&other, 1), 4);
	look_pace_news(&pace);
	ck_assert_int_eq(pause_of(&mark, 1), 1);
}
END_TEST

START_TEST(searches_take_a_twentieth_of_the_time)
{
	look_pace_failed(&pace, 0, 2 * S, &mark, 1, false);
	ck_assert_int_eq(pause_of(&other, 1), 40);
	look_pace_failed(&pace, 0, 60 * S, &mark, 1, false);
	ck_assert_int_eq(pause_of(&other, 1), 300);
}
END_TEST

/* Until all was looked at; then all of it counts. */
START_TEST(one_that_goes_on_waits_a_second)
{
	look_pace_failed(&pace, 0, 2 * S, &mark, 1, true);
	ck_assert_int_eq(pause_of(&mark, 1), 1);
	look_pace_failed(&pace, 3 * S, 2 * S, &mark, 1, false);
	ck_assert_int_eq(pause_of(&mark, 1), 80);
	look_pace_failed(&pace, 90 * S, S / 1000, &mark, 1, false);
	ck_assert_int_eq(pause_of(&mark, 1), 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("look_pace");
	TCase *cases = tcase_create("pauses");

	tcase_add_checked_fixture(cases, setup, NULL);
	tcase_add_test(cases, pauses_grow_to_five_minutes);
	tcase_add_test(cases, what_is_new_is_searched_after_a_second);
	tcase_add_test(cases, searches_take_a_twentieth_of_the_time);
	tcase_add_test(cases, one_that_goes_on_waits_a_second);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
