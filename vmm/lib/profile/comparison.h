// SPDX-License-Identifier: BSD-2-Clause
/* Two sets of repetitions of the same work, compared: their metrics, and which functions explain the difference. */
#ifndef VPROF_PROFILE_COMPARISON_H
#define VPROF_PROFILE_COMPARISON_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/profile/mode.h"
#include "lib/profile/shift.h"

/* Something measured in each repetition: a metric ("guest"), or the time of a function. */
struct series {
	char *name;   /* without what a compiler hangs on for its own copies: ".constprop.0", ".isra.0", ".cold" */
	char *module; /* of a function; "" for a metric */
	char *unit;   /* "ns", an event's name, or what a workload says */
	enum profile_mode mode;
	double *values; /* one for each repetition; NAN in a metric: not measured in that one */
};

/* What was measured of one build. Its values in `unit` are exact when they are counted and every repetition's the same.
 */
struct measurements {
	size_t n_repetitions;
	bool counted;         /* every event one by one: without the noise of samples */
	char *unit;           /* of the functions' values, and of the first metric's */
	GPtrArray *metrics;   /* of struct series, owned; the first is the sum of the functions */
	GPtrArray *functions; /* of struct series, owned, each name once in a mode and module */
	GHashTable *index;    /* the functions by all three */
};

struct measurements *measurements_new(const char *unit, size_t n_repetitions);
void measurements_free(struct measurements *measurements);

/* The metric of that name, or NULL. */
const struct series *measurements_metric(const struct measurements *measurements, const char *name);

/* The series of that name, made (all 0) if it is new. A function's name is cut before the first '.' behind its start.
 */
struct series *measurements_add_metric(struct measurements *measurements, const char *name, const char *unit);
/* As measurements_add_metric, but NAN at first: not every repetition may have it. */
struct series *measurements_add_partial(struct measurements *measurements, const char *name, const char *unit);
/* Takes the metrics away that some repetition does not have. */
void measurements_drop_partial(struct measurements *measurements);
struct series *measurements_add_function(struct measurements *measurements, const char *name, const char *module,
                                         enum profile_mode mode);

/*
 * Makes the functions' values shares of their repetition's first metric, in percent: a machine that is slower for a
 * while is slower in all of them. The metrics are gone but the first, which is 100.
 */
void measurements_to_shares(struct measurements *measurements);

/* Whether the values need no statistics: they are exact, and would be the same in one repetition more. */
bool measurements_exact(const struct measurements *measurements, const struct series *series);

/*
 * What has become of a function with a name, module and mode that only one of the sets has, by names and times;
 * fate.h has the rules.
 */
enum fate { FATE_KEPT, FATE_RENAMED, FATE_INLINED, FATE_SPLIT, FATE_NEW, FATE_GONE };

/* One thing in both sets. */
struct change {
	const struct series *base, *now; /* one of them NULL: only the other has it */
	double base_median, now_median;  /* 0 where there is none */
	struct shift shift;              /* now - base, in the unit of the values */
	bool exact;                      /* both are: no bounds, no chance */
	bool stands;    /* a change, after control of the false discovery rate; false: not tested, or not shown */
	enum fate fate; /* FATE_KEPT: both sets have it */
	const struct series *other; /* inlined: into which; split off: out of which; else NULL */
};

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
/* What it is of base, or else of now. */
static inline const struct series *change_series(const struct change *change)
{
	return change->base != NULL ? change->base : change->now;
}
/* "kept", "renamed", "inlined", "split", "new", "gone". */
const char *fate_name(enum fate fate);

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
