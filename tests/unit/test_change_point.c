// SPDX-License-Identifier: BSD-2-Clause
/* Change points on simulated series with known truth. Seeded, so that each run is the same. */
#include <check.h>
#include <math.h>
#include <stdint.h>

#include "lib/profile/change_point.h"
#include "noise.h"
#include "run_suite.h"

#include <glib.h>

#define TRIALS 1000
#define SERIES_MAX 80u

static void setup(void)
{
	noise_start(4711);
}

/* Few levels, many equal values. */
static double rounded(void)
{
	return round(normal());
}

static void fill(double *values, size_t n, double (*noise)(void), double level)
{
	for (size_t i = 0; i < n; i++)
		values[i] = level + noise();
}

/* The most that TRIALS with probability p give, but for one run in a million (normal approximation). */
static double most(double p)
{
	return TRIALS * p + 4.8 * sqrt(TRIALS * p * (1 - p));
}

static const struct {
	double (*noise)(void);
	size_t n;
	double alpha;
} without_change[] = {
	{normal, 8, 0.05},     {normal, 20, 0.01}, {normal, 60, 0.05},
	{disturbed, 30, 0.05}, {skewed, 20, 0.05}, {rounded, 25, 0.05},
};

START_TEST(false_alarms_are_at_most_alpha)
{
	const typeof(without_change[0]) *c = &without_change[_i];
	double values[SERIES_MAX];
	unsigned alarms = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		size_t n;

		fill(values, c->n, c->noise, 100);
		g_free(change_points_find(values, c->n, c->alpha, &n));
		alarms += n != 0;
	}
	ck_assert_double_le(alarms, most(c->alpha));
	/* And it is not blind. */
	ck_assert_double_ge(alarms, TRIALS * c->alpha / 4);
}
END_TEST

static const struct {
	double (*noise)(void);
	size_t n, at;
	double shift;
	double found, placed; /* of the trials, at least: found at all; and within 2 of the truth */
} with_change[] = {
	{normal, 20, 10, 3, 0.98, 0.95},
	{normal, 40, 35, 3, 0.9, 0.82}, /* a few runs ago */
	{normal, 60, 20, 1, 0.6, 0.3},
	{disturbed, 30, 15, 4, 0.88, 0.8},
};

START_TEST(a_change_is_found_where_it_is)
{
	const typeof(with_change[0]) *c = &with_change[_i];
	double values[SERIES_MAX];
	unsigned found = 0, placed = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		g_autofree struct change_point *points = NULL;
		size_t n;

		fill(values, c->at, c->noise, 100);
		fill(values + c->at, c->n - c->at, c->noise, 100 + c->shift);
		points = change_points_find(values, c->n, 0.01, &n);
		found += n != 0;
		for (size_t j = 0; j < n; j++)
			if (labs((long)points[j].at - (long)c->at) <= 2) {
				placed++;
				break;
			}
	}
	ck_assert_double_ge(found, c->found * TRIALS);
	ck_assert_double_ge(placed, c->placed * TRIALS);
}
END_TEST

START_TEST(steps_are_found_one_by_one)
{
	static const size_t truth[] = {20, 40, 60};
	double values[80];
	g_autofree struct change_point *points = NULL;
	size_t n;

	for (size_t i = 0; i < 4; i++)
		fill(values + 20 * i, 20, normal, i == 2 ? 90 : 100 + 10 * (double)i);
	points = change_points_find(values, 80, 0.01, &n);
	ck_assert_uint_eq(n, 3);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(points[i].at, truth[i]);
		ck_assert_double_gt(points[i].p, 0);
		ck_assert_double_le(points[i].p, 0.01);
	}
}
END_TEST

START_TEST(the_same_series_has_the_same_changes)
{
	double values[40];
	g_autofree struct change_point *first = NULL, *second = NULL;
	size_t n_first, n_second;

	fill(values, 20, normal, 100);
	fill(values + 20, 20, normal, 102);
	first = change_points_find(values, 40, 0.05, &n_first);
	second = change_points_find(values, 40, 0.05, &n_second);
	ck_assert_uint_eq(n_first, n_second);
	ck_assert_uint_ge(n_first, 1);
	for (size_t i = 0; i < n_first; i++) {
		ck_assert_uint_eq(first[i].at, second[i].at);
		ck_assert_double_eq(first[i].p, second[i].p);
	}
}
END_TEST

START_TEST(too_little_is_no_change)
{
	const double few[] = {1, 1, 9, 9, 9}, equal[20] = {0}, outlier[] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 100};
	size_t n;

	ck_assert_ptr_null(change_points_find(few, 0, 0.05, &n));
	ck_assert_uint_eq(n, 0);
	ck_assert_ptr_null(change_points_find(few, G_N_ELEMENTS(few), 0.05, &n));
	ck_assert_ptr_null(change_points_find(equal, G_N_ELEMENTS(equal), 0.05, &n));
	ck_assert_ptr_null(change_points_find(outlier, G_N_ELEMENTS(outlier), 0.01, &n));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("change_point");
	TCase *tc = tcase_create("change_point");

	tcase_set_timeout(tc, 50);
	tcase_add_checked_fixture(tc, setup, noise_end);
	tcase_add_loop_test(tc, false_alarms_are_at_most_alpha, 0, G_N_ELEMENTS(without_change));
	tcase_add_loop_test(tc, a_change_is_found_where_it_is, 0, G_N_ELEMENTS(with_change));
	tcase_add_test(tc, steps_are_found_one_by_one);
	tcase_add_test(tc, the_same_series_has_the_same_changes);
	tcase_add_test(tc, too_little_is_no_change);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
