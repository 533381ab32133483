// SPDX-License-Identifier: BSD-2-Clause
/* Quantiles of what was counted from one sample to the next. */
#include <check.h>

#include "lib/profile/lateness.h"
#include "run_suite.h"

#define PERIOD UINT64_C(4000000)

static struct lateness lateness;

static void setup(void)
{
	memset(&lateness, 0, sizeof(lateness));
}

static void assert_quantile(double share, double expected)
{
	ck_assert_double_eq_tol(lateness_quantile(&lateness, share), expected, 0.0001);
}

START_TEST(nothing_has_no_quantiles)
{
	assert_quantile(0.5, 0);
}
END_TEST

START_TEST(one_sample_is_all_of_them)
{
	lateness_add(&lateness, PERIOD + PERIOD / 4, PERIOD);
	assert_quantile(0, 1.25);
	assert_quantile(0.5, 1.25);
	assert_quantile(1, 1.25);
}
END_TEST

START_TEST(most_are_in_time_and_some_late)
{
	for (unsigned i = 0; i < 90; i++)
		lateness_add(&lateness, PERIOD / 100 * (100 + i % 2), PERIOD);
	for (unsigned i = 0; i < 9; i++)
		lateness_add(&lateness, 2 * PERIOD, PERIOD);
	lateness_add(&lateness, 7 * PERIOD, PERIOD);
	assert_quantile(0.45, 1);
	assert_quantile(0.46, 1.01);
	assert_quantile(0.90, 1.01);
	assert_quantile(0.91, 2);
	assert_quantile(0.99, 2);
	assert_quantile(1, 7);
}
END_TEST

START_TEST(what_is_later_than_all_counts_as_the_last)
{
	lateness_add(&lateness, UINT64_MAX, 1);
	assert_quantile(0.5, LATENESS_PERIODS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lateness");
	TCase *test = tcase_create("lateness");

	tcase_add_checked_fixture(test, setup, NULL);
	tcase_add_test(test, nothing_has_no_quantiles);
	tcase_add_test(test, one_sample_is_all_of_them);
	tcase_add_test(test, most_are_in_time_and_some_late);
	tcase_add_test(test, what_is_later_than_all_counts_as_the_last);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
