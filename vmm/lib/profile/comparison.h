// SPDX-License-Identifier: BSD-2-Clause
/* Two sets of repetitions of the same work, compared: their metrics, and which functions explain the difference. */
#ifndef VPROF_PROFILE_COMPARISON_H
#define VPROF_PROFILE_COMPARISON_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/profile/fate.h"
#include "lib/profile/measurements.h"

struct comparison_options {
	double alpha;     /* of each bound, and the rate of false discoveries among the functions; 0 < alpha < 0.5 */
	double min_share; /* functions below this share of the time, in both sets, are not tested: 0..1 */
};

struct comparison {
	struct change *metrics; /* in base's order: those that both sets have in the same unit */
	size_t n_metrics;
	GPtrArray *apart;         /* of const struct series: the other metrics */
	struct change *functions; /* those tested, the largest shift first */
	size_t n_functions;
	struct change *only; /* functions of weight that only one of the sets has, by fate, the largest shift first */
	size_t n_only;
	size_t n_small;    /* not tested: below min_share */
	size_t n_standing; /* of the functions */
	double explained;  /* the part of the first metric's shift that they sum up to */
};

/* Borrows both sets. Both have repetitions, and their units are the same. */
struct comparison *comparison_new(const struct measurements *base, const struct measurements *now,
                                  const struct comparison_options *options);
void comparison_free(struct comparison *comparison);

/* Those of `only` with that fate; *n: how many. */
const struct change *comparison_only(const struct comparison *comparison, enum fate fate, size_t *n);

enum verdict {
	VERDICT_GOOD,      /* not more than max_regression above the base, or better */
	VERDICT_REGRESSED, /* more than max_regression above the base */
	VERDICT_UNDECIDED, /* the repetitions do not say which */
};

/* "good", "regression", "undecided". */
const char *verdict_name(enum verdict verdict);

struct judgement {
	enum verdict verdict;
	bool exact;                   /* there are no bounds, nor any need of them */
	double ratio;                 /* now / base */
	double ratio_low, ratio_high; /* each bound is wrong with probability alpha at most; 0, INFINITY: none */
	double detectable;            /* the smallest change from max_regression these repetitions tell, e.g. 0.02 */
	size_t repetitions_wanted;    /* of each set, to tell no change from max_regression; SIZE_MAX: no number */
};

/* Whether an exact metric is worse now than max_regression (0.03: 3 %) allows. Both values > 0. */
struct judgement judge_exact(double base, double now, double max_regression);

/*
 * Whether a metric of which less is better is worse now than max_regression (0.03: 3 %) allows; wrong with probability
 * alpha at most, either way. Repetitions scatter by factors: the test is one of logarithms. All values > 0. What the
 * judgement promises about power is for 0.8.
 */
struct judgement judge(const double *base, size_t n_base, const double *now, size_t n_now, double max_regression,
                       double alpha);

#endif
