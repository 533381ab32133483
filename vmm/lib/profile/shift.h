// SPDX-License-Identifier: BSD-2-Clause
/*
 * How far one sample of repetitions lies from another, by ranks: nothing is assumed of how the measurements scatter but
 * that both scatter alike, the probabilities are exact for small samples, and an outlier counts as one repetition.
 *
 * Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other", 1947;
 * the estimate and its interval: Hodges and Lehmann, "Estimates of location based on rank tests", 1963.
 *
 * A bootstrap over as few repetitions as a pipeline can afford promises more than it keeps: its interval is too narrow.
 */
#ifndef VPROF_PROFILE_SHIFT_H
#define VPROF_PROFILE_SHIFT_H

#include <stdbool.h>
#include <stddef.h>

#define SHIFT_REPETITIONS_MAX 1000u /* of each sample */

struct shift {
	double estimate; /* the median of all differences to - from */
	double low,
		high; /* each bound is wrong with probability alpha at most; -INFINITY, INFINITY: too few repetitions */
	double p;     /* the probability of a difference this large, either way, where there is none */
};

/* from[0..n_from-1], to[0..n_to-1]: finite, 1..SHIFT_REPETITIONS_MAX of each. alpha: 0 < alpha < 0.5. */
struct shift shift_between(const double *from, size_t n_from, const double *to, size_t n_to, double alpha);

/* The repetitions that each of two samples needs before shift_between can give a bound at all. */
size_t shift_repetitions_min(double alpha);

/*
 * The smallest shift that a bound at `alpha` would tell from 0 with probability `power`, when the measurements of both
 * samples scatter by the standard deviation sd (approximation for normal scatter); INFINITY: they are too few for a
 * bound.
 */
double shift_detectable(double sd, size_t n_from, size_t n_to, double alpha, double power);

/* The repetitions that each sample needs to tell `shift` (> 0) from 0 with this power; SIZE_MAX: no number does. */
size_t shift_repetitions(double shift, double sd, double alpha, double power);

/* The standard deviation of both samples around their own medians, by the median of the absolute deviations. */
double shift_scatter(const double *from, size_t n_from, const double *to, size_t n_to);

/* The median of values[0..n-1], n >= 1. */
double shift_median(const double *values, size_t n);

/*
 * Which of n findings stand, when at most the share `rate` of those that do may be false (Benjamini and Hochberg,
 * "Controlling the false discovery rate", 1995). stands[i] is set for p[i].
 */
void shift_discoveries(const double *p, size_t n, double rate, bool *stands);

#endif
