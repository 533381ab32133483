// SPDX-License-Identifier: BSD-2-Clause
/* The statistics as statistics: on simulated repetitions with known truth. Seeded, so that each run is the same. */
#include <check.h>
#include <math.h>
#include <stdint.h>

#include "lib/profile/shift.h"
#include "noise.h"
#include "run_suite.h"

#include <glib.h>

/* A sanitizer looks at the memory that is used; the statistics are the same without it. */
#if defined(VPROF_SANITIZED)
#define TRIALS 1000
#else
#define TRIALS 10000
#endif

static void setup(void)
{
	noise_start(20261121);
}

static void fill(double *values, size_t n, double (*noise)(void), double shift)
{
	for (size_t i = 0; i < n; i++)
		values[i] = 100 + shift + noise();
}

struct tally {
	unsigned above, below; /* trials with the lower bound above the truth, or the upper bound below it */
	unsigned detected;     /* with the lower bound above 0 */
};

static struct tally trials(double (*noise)(void), size_t n_from, size_t n_to, double shift, double alpha)
{
	double from[SHIFT_REPETITIONS_MAX], to[SHIFT_REPETITIONS_MAX];
	struct tally tally = {0};

	for (unsigned i = 0; i < TRIALS; i++) {
		fill(from, n_from, noise, 0);
		fill(to, n_to, noise, shift);
		struct shift found = shift_between(from, n_from, to, n_to, alpha);

		tally.above += found.low > shift;
		tally.below += found.high < shift;
		tally.detected += found.low > 0;
	}
	return tally;
}

/* The most that TRIALS with probability p give, but for one run in a million (normal approximation). */
static double most(double p)
{
	return TRIALS * p + 4.8 * sqrt(TRIALS * p * (1 - p));
}

static const struct {
	double (*noise)(void);
	size_t n_from, n_to;
	double alpha;
} without_change[] = {
	{normal, 5, 5, 0.01},   {normal, 10, 10, 0.01},  {normal, 5, 20, 0.05},
	{normal, 16, 16, 0.05}, {disturbed, 5, 5, 0.01}, {disturbed, 10, 7, 0.05},
	{skewed, 10, 10, 0.01}, {skewed, 18, 18, 0.01},  {normal, 4, 30, 0.01},
};

START_TEST(false_alarms_are_at_most_alpha)
{
	const typeof(without_change[0]) *c = &without_change[_i];
	struct tally tally = trials(c->noise, c->n_from, c->n_to, 0, c->alpha);

	ck_assert_double_le(tally.above, most(c->alpha));
	ck_assert_double_le(tally.below, most(c->alpha));
	/* And it is not so careful that it would be blind: exact tests of few repetitions waste a part of alpha. */
	ck_assert_double_ge(tally.above, TRIALS * c->alpha / 4);
}
END_TEST

START_TEST(bounds_hold_a_true_change)
{
	struct tally tally = trials(disturbed, 8, 8, 5, 0.05);

	ck_assert_double_le(tally.above, most(0.05));
	ck_assert_double_le(tally.below, most(0.05));
}
END_TEST

START_TEST(promised_power_is_kept)
{
	static const size_t repetitions[] = {6, 8, 12, 20};
	size_t n = repetitions[_i];
	struct tally tally = trials(normal, n, n, shift_detectable(1, n, n, 0.01, 0.8), 0.01);

	ck_assert_double_ge(tally.detected, 0.77 * TRIALS);
	ck_assert_double_le(tally.detected, 0.83 * TRIALS);
}
END_TEST

START_TEST(nothing_is_promised_without_a_bound)
{
	ck_assert(isinf(shift_detectable(1, 4, 4, 0.01, 0.8)));
	ck_assert(isfinite(shift_detectable(1, 5, 5, 0.01, 0.8)));
	ck_assert(isinf(shift_detectable(1, 8, 3, 0.001, 0.8)));
}
END_TEST

START_TEST(promised_repetitions_are_enough)
{
	size_t n = shift_repetitions(1, 1, 0.01, 0.9);

	ck_assert_uint_gt(n, 10);
	ck_assert_double_ge(trials(normal, n, n, 1, 0.01).detected, 0.87 * TRIALS);
	ck_assert_uint_eq(shift_repetitions(1e-6, 1, 0.01, 0.9), SIZE_MAX);
}
END_TEST

/* Tables: Mann and Whitney 1947. P(U = 0) is 1 in n over k, so that 1 / 252 allows 0.01 and 1 / 70 does not. */
START_TEST(few_repetitions_bound_nothing)
{
	const double low[] = {1, 2, 3, 4, 5}, high[] = {11, 12, 13, 14, 15};
	struct shift shift = shift_between(low, 4, high, 4, 0.01);

	ck_assert_uint_eq(shift_repetitions_min(0.01), 5);
	ck_assert_uint_eq(shift_repetitions_min(0.05), 3);
	ck_assert_double_eq(shift.estimate, 10);
	ck_assert(isinf(shift.low) && isinf(shift.high));
	shift = shift_between(low, 5, high, 5, 0.01);
	ck_assert_double_eq(shift.low, 6 + 1); /* the smallest but one of 25 differences: 2 * P(U <= 1) is 4 / 252 */
	ck_assert_double_eq_tol(shift.p, 2.0 / 252, 1e-12);
	ck_assert_double_eq_tol(shift_between(high, 5, low, 5, 0.01).p, 2.0 / 252, 1e-12);
}
END_TEST

START_TEST(ties_share_their_ranks)
{
	const double same[] = {3, 3, 3, 3, 3, 3}, other[] = {3, 3, 3, 4, 4, 4};

	ck_assert_double_eq(shift_between(same, 6, same, 6, 0.05).p, 1);
	ck_assert_double_eq(shift_between(same, 6, same, 6, 0.05).low, 0);
	/* All three 4s among the last six: 6 over 3 of 12 over 3 ways, twice for both sides. */
	ck_assert_double_eq_tol(shift_between(same, 6, other, 6, 0.05).p, 2.0 * 20 / 220, 1e-12);
}
END_TEST

START_TEST(many_repetitions_go_by_the_normal_distribution)
{
	double from[100], to[100];

	fill(from, 100, normal, 0);
	fill(to, 100, normal, 1);
	struct shift shift = shift_between(from, 100, to, 100, 0.01);

	ck_assert_double_eq_tol(shift.estimate, 1, 0.5);
	ck_assert_double_gt(shift.low, 0.3);
	ck_assert_double_lt(shift.high, 1.7);
	ck_assert_double_lt(shift.p, 1e-6);
	ck_assert_double_eq_tol(shift_scatter(from, 100, to, 100), 1, 0.25);
}
END_TEST

START_TEST(median_of_an_even_number)
{
	const double values[] = {4, 1, 3, 2};

	ck_assert_double_eq(shift_median(values, 4), 2.5);
	ck_assert_double_eq(shift_median(values, 3), 3);
}
END_TEST

START_TEST(discoveries_are_those_of_the_paper)
{
	/* The example of Benjamini and Hochberg 1995, section 3.3: of 15 hypotheses 4 are rejected at 0.05. */
	const double p[] = {0.0459, 0.0001, 0.0004, 0.6528, 0.0019, 0.0095, 0.0201, 0.0278,
	                    0.0298, 0.0344, 0.3240, 0.4262, 0.5719, 0.7590, 1.0};
	bool stands[G_N_ELEMENTS(p)];
	size_t n = 0;

	shift_discoveries(p, G_N_ELEMENTS(p), 0.05, stands);
	for (size_t i = 0; i < G_N_ELEMENTS(p); i++)
		n += stands[i];
	ck_assert_uint_eq(n, 4);
	ck_assert(stands[1] && stands[2] && stands[4] && stands[5]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shift");
	TCase *tests = tcase_create("shift");

	tcase_add_checked_fixture(tests, setup, noise_end);
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, false_alarms_are_at_most_alpha, 0, G_N_ELEMENTS(without_change));
	tcase_add_test(tests, bounds_hold_a_true_change);
	tcase_add_loop_test(tests, promised_power_is_kept, 0, 4);
	tcase_add_test(tests, promised_repetitions_are_enough);
	tcase_add_test(tests, nothing_is_promised_without_a_bound);
	tcase_add_test(tests, few_repetitions_bound_nothing);
	tcase_add_test(tests, ties_share_their_ranks);
	tcase_add_test(tests, many_repetitions_go_by_the_normal_distribution);
	tcase_add_test(tests, median_of_an_even_number);
	tcase_add_test(tests, discoveries_are_those_of_the_paper);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
