// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a series of measurements, in the order of time, goes over to another level.
 *
 * A segment is split where the ranks before and behind differ most (Pettitt, "A non-parametric approach to the
 * change-point problem", 1979, with the statistic standardised, so that a change near an end counts as much), if fewer
 * than alpha of the permutations of its values show as large a difference, and then its parts by the same test
 * (Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data", 2014).
 * Nothing is assumed of how measurements scatter but that in a segment their order means nothing. Permutations come
 * from a fixed seed: the same series has the same changes.
 */
#ifndef VPROF_PROFILE_CHANGE_POINT_H
#define VPROF_PROFILE_CHANGE_POINT_H

#include <stddef.h>

#define CHANGE_SERIES_MAX 10000u /* values */
#define CHANGE_SEGMENT_MIN 3u    /* values on either side: fewer are outliers, not a level */
#define CHANGE_ALPHA_MIN 0.001   /* what the number of permutations can tell */

struct change_point {
	size_t at; /* the first value of the new level, 1..n-1 */
	double p;  /* the share of permutations with a difference as large, itself among them: 0 < p <= alpha */
};

/*
 * values[0..n-1], finite; n up to CHANGE_SERIES_MAX. alpha: CHANGE_ALPHA_MIN..0.5, the probability of any finding in a
 * series without change. Array of *n_points by their places, by g_free; NULL and 0: none.
 */
struct change_point *change_points_find(const double *values, size_t n, double alpha, size_t *n_points);

#endif
