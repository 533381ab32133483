// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/change_point.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>

#define PERMUTATIONS 999u
#define SEED 20261121u

struct ranked {
	double value;
	size_t at;
};

static int ranked_compare(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	return (left->value > right->value) - (left->value < right->value);
}

/* Ranks less their mean, so that their sum is 0; equal values share the mean of their ranks. */
static void ranks_of(const double *values, size_t n, double *ranks)
{
	g_autofree struct ranked *sorted = g_new(struct ranked, n);

	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct ranked){values[i], i};
	qsort(sorted, n, sizeof(*sorted), ranked_compare);
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		while (end < n && sorted[end].value == sorted[i].value)
			end++;
		for (size_t j = i; j < end; j++)
			ranks[sorted[j].at] = (double)(i + end - 1) / 2 - (double)(n - 1) / 2;
	}
}

/* The largest difference in rank between what is before and behind a place, in standard deviations but for a factor. */
static double largest_difference(const double *ranks, size_t n, size_t *at)
{
	double sum = 0, largest = -1;

	for (size_t i = 1; i + CHANGE_SEGMENT_MIN <= n; i++) {
		double difference;

		sum += ranks[i - 1];
		if (i < CHANGE_SEGMENT_MIN)
			continue;
		difference = fabs(sum) / sqrt((double)i * (double)(n - i));
		/* A little more than rounding, so that equal differences are equal on every machine. */
		if (difference > largest * (1 + 1e-9)) {
			largest = difference;
			*at = i;
		}
	}
	return largest;
}

static void shuffle(double *values, size_t n, GRand *dice)
{
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = (size_t)g_rand_int_range(dice, 0, (gint32)i + 1);
		double value = values[i];

		values[i] = values[j];
		values[j] = value;
	}
}

/* p of the largest difference, and where it is; more than alpha as soon as it must be. Destroys the ranks. */
static double segment_p(double *ranks, size_t n, double alpha, GRand *dice, size_t *at)
{
	const double found = largest_difference(ranks, n, at);
	unsigned as_large = 1, most = (unsigned)(alpha * (PERMUTATIONS + 1));
	size_t anywhere;

	for (unsigned i = 0; i < PERMUTATIONS && as_large <= most; i++) {
		shuffle(ranks, n, dice);
		as_large += largest_difference(ranks, n, &anywhere) >= found * (1 - 1e-9);
	}
	return (double)as_large / (PERMUTATIONS + 1);
}

static void segment_split(const double *values, size_t from, size_t to, double alpha, GRand *dice, GArray *points)
{
	const size_t n = to - from;
	g_autofree double *ranks = NULL;
	struct change_point point;

	if (n < 2 * (size_t)CHANGE_SEGMENT_MIN)
		return;
	ranks = g_new(double, n);
	ranks_of(values + from, n, ranks);
	point.p = segment_p(ranks, n, alpha, dice, &point.at);
	if (point.p > alpha)
		return;
	point.at += from;
	segment_split(values, from, point.at, alpha, dice, points);
	g_array_append_val(points, point);
	segment_split(values, point.at, to, alpha, dice, points);
}

struct change_point *change_points_find(const double *values, size_t n, double alpha, size_t *n_points)
{
	GArray *points = g_array_new(FALSE, FALSE, sizeof(struct change_point));
	GRand *dice = g_rand_new_with_seed(SEED);

	segment_split(values, 0, n, alpha, dice, points);
	g_rand_free(dice);
	*n_points = points->len;
	return (struct change_point *)g_array_free(points, points->len == 0);
}
