// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/shift.h"

#include <glib.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Above this many repetitions in all, the normal distribution stands for the exact one. */
#define EXACT_MAX 24u

/* The rank test's standard error, relative to that of the means, for normal scatter: 1 / sqrt(3 / pi). */
#define RANK_EFFICIENCY (3 / G_PI)

/*
 * Exact tests of few repetitions detect less than the normal approximation says, as if each sample had two repetitions
 * fewer (by simulation: tests/unit/test_shift.c).
 */
#define REPETITIONS_LOST 2.0

/* The median of absolute deviations, times this, is the standard deviation of normal scatter. */
#define DEVIATIONS_TO_SD 1.4826

static int doubles_compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double sorted_median(const double *sorted, size_t n)
{
	return n % 2 != 0 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double shift_median(const double *values, size_t n)
{
	g_autofree double *sorted = g_memdup2(values, n * sizeof(*values));

	qsort(sorted, n, sizeof(*sorted), doubles_compare);
	return sorted_median(sorted, n);
}

static double normal_below(double z)
{
	return erfc(-z / G_SQRT2) / 2;
}

/* The z that a standard normal variable exceeds with probability p, by bisection. */
static double normal_above(double p)
{
	double low = -40, high = 40;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (normal_below(-middle) > p)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * The ranks of from and then to, doubled so that ties, which share the mean of their ranks, have whole numbers. Returns
 * the sum of t^3 - t over the groups of t ties.
 */
static double ranks_doubled(const double *from, size_t n_from, const double *to, size_t n_to, unsigned *ranks)
{
	size_t n = n_from + n_to;
	g_autofree double *sorted = g_new(double, n);
	double ties = 0;

	memcpy(sorted, from, n_from * sizeof(*from));
	memcpy(sorted + n_from, to, n_to * sizeof(*to));
	qsort(sorted, n, sizeof(*sorted), doubles_compare);
	for (size_t i = 0; i < n; i++) {
		double value = i < n_from ? from[i] : to[i - n_from];
		size_t below = 0, same = 0;

		for (size_t j = 0; j < n && sorted[j] <= value; j++)
			*(sorted[j] < value ? &below : &same) += 1;
		ranks[i] = (unsigned)(2 * below + same + 1);
		ties += (double)(same * same) - 1; /* t members add t^2 - 1 each */
	}
	return ties;
}

/*
 * How many ways there are to choose n_chosen of the ranks with each sum, as probabilities: element s of the result is
 * the probability of the sum s. Array by g_free, of *n_sums elements.
 */
static double *sums_distribution(const unsigned *ranks, size_t n, size_t n_chosen, size_t *n_sums)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += ranks[i];
	*n_sums = total + 1;
	g_autofree double *ways = g_new0(double, (n_chosen + 1) * *n_sums);

	ways[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t chosen = MIN(i + 1, n_chosen); chosen > 0; chosen--)
			for (size_t sum = ranks[i]; sum < *n_sums; sum++)
				ways[chosen * *n_sums + sum] += ways[(chosen - 1) * *n_sums + sum - ranks[i]];

	double *distribution = g_memdup2(ways + n_chosen * *n_sums, *n_sums * sizeof(double));
	double all = 0;

	for (size_t sum = 0; sum < *n_sums; sum++)
		all += distribution[sum];
	for (size_t sum = 0; sum < *n_sums; sum++)
		distribution[sum] /= all;
	return distribution;
}

static double exact_p(const unsigned *ranks, size_t n_from, size_t n_to, size_t sum)
{
	size_t n_sums;
	g_autofree double *distribution = sums_distribution(ranks, n_from + n_to, n_to, &n_sums);
	double below = 0, above = 0;

	for (size_t s = 0; s <= sum; s++)
		below += distribution[s];
	for (size_t s = sum; s < n_sums; s++)
		above += distribution[s];
	return MIN(1, 2 * MIN(below, above));
}

static double normal_p(size_t n_from, size_t n_to, size_t sum, double ties)
{
	double n = (double)(n_from + n_to), both = (double)n_from * (double)n_to;
	double variance = both / 12 * (n + 1 - ties / (n * (n - 1)));
	/* Half a rank for continuity; sums are doubled. */
	double distance = fabs((double)sum / 2 - (double)n_to * (n + 1) / 2) - 0.5;

	return variance > 0 && distance > 0 ? MIN(1, 2 * normal_below(-distance / sqrt(variance))) : 1;
}

static double rank_p(const double *from, size_t n_from, const double *to, size_t n_to)
{
	g_autofree unsigned *ranks = g_new(unsigned, n_from + n_to);
	double ties = ranks_doubled(from, n_from, to, n_to, ranks);
	size_t sum = 0;

	for (size_t i = n_from; i < n_from + n_to; i++)
		sum += ranks[i];
	return n_from + n_to <= EXACT_MAX ? exact_p(ranks, n_from, n_to, sum) : normal_p(n_from, n_to, sum, ties);
}

/*
 * The largest k for which a sample's k-th smallest difference is below the true shift with probability 1 - alpha at
 * least: P(U <= k - 1) <= alpha, where U counts the pairs in which `to` is the smaller. 0: none.
 */
static size_t differences_outside(size_t n_from, size_t n_to, double alpha)
{
	size_t n = n_from + n_to, n_sums, k = 0;

	if (n > EXACT_MAX) {
		double both = (double)n_from * (double)n_to;
		double u = both / 2 - normal_above(alpha) * sqrt(both * (double)(n + 1) / 12);

		return u > 0 ? (size_t)u : 0;
	}
	g_autofree unsigned *ranks = g_new(unsigned, n);

	for (size_t i = 0; i < n; i++)
		ranks[i] =
			(unsigned)i; /* without ties, and from 0, so that the smallest sum is that of the first n_to */
	g_autofree double *distribution = sums_distribution(ranks, n, n_to, &n_sums);
	double below = 0;

	for (size_t sum = n_to * (n_to - 1) / 2; sum < n_sums; sum++, k++) {
		below += distribution[sum];
		if (below > alpha)
			break;
	}
	return k;
}

struct shift shift_between(const double *from, size_t n_from, const double *to, size_t n_to, double alpha)
{
	size_t n = n_from * n_to, outside = differences_outside(n_from, n_to, alpha);
	g_autofree double *differences = g_new(double, n);
	struct shift shift = {.low = -INFINITY, .high = INFINITY, .p = rank_p(from, n_from, to, n_to)};

	for (size_t i = 0; i < n; i++)
		differences[i] = to[i % n_to] - from[i / n_to];
	qsort(differences, n, sizeof(*differences), doubles_compare);
	shift.estimate = sorted_median(differences, n);
	if (outside != 0) {
		shift.low = differences[outside - 1];
		shift.high = differences[n - outside];
	}
	return shift;
}

size_t shift_repetitions_min(double alpha)
{
	size_t n = 1;

	while (differences_outside(n, n, alpha) == 0)
		n++;
	return n;
}

double shift_detectable(double sd, size_t n_from, size_t n_to, double alpha, double power)
{
	double z = normal_above(alpha) + normal_above(1 - power);
	double n = 2 / (1 / (double)n_from + 1 / (double)n_to) - REPETITIONS_LOST;

	if (n <= 0 || differences_outside(n_from, n_to, alpha) == 0)
		return INFINITY;
	return z * sd * sqrt(2 / n / RANK_EFFICIENCY);
}

size_t shift_repetitions(double shift, double sd, double alpha, double power)
{
	double z = normal_above(alpha) + normal_above(1 - power);
	double n = ceil(2 / RANK_EFFICIENCY * (z * sd / shift) * (z * sd / shift) + REPETITIONS_LOST);

	if (!(n < (double)SHIFT_REPETITIONS_MAX))
		return SIZE_MAX;
	return MAX((size_t)n, shift_repetitions_min(alpha));
}

double shift_scatter(const double *from, size_t n_from, const double *to, size_t n_to)
{
	g_autofree double *deviations = g_new(double, n_from + n_to);
	double from_median = shift_median(from, n_from), to_median = shift_median(to, n_to);

	for (size_t i = 0; i < n_from; i++)
		deviations[i] = fabs(from[i] - from_median);
	for (size_t i = 0; i < n_to; i++)
		deviations[n_from + i] = fabs(to[i] - to_median);
	/* Each median lies in the middle of its own values: two degrees of freedom are gone. */
	double n = (double)(n_from + n_to);

	return DEVIATIONS_TO_SD * shift_median(deviations, n_from + n_to) * sqrt(n / MAX(n - 2, 1));
}

struct finding {
	double p;
	size_t index;
};

void shift_discoveries(const double *p, size_t n, double rate, bool *stands)
{
	g_autofree struct finding *findings = g_new(struct finding, n);
	size_t n_stand = 0;

	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		findings[i] = (struct finding){.p = p[i], .index = i};
	qsort(findings, n, sizeof(*findings), doubles_compare); /* p is the first member */
	for (size_t i = 0; i < n; i++)
		if (findings[i].p <= rate * (double)(i + 1) / (double)n)
			n_stand = i + 1;
	for (size_t i = 0; i < n; i++)
		stands[findings[i].index] = i < n_stand;
}
