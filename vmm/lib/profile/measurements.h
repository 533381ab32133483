// SPDX-License-Identifier: BSD-2-Clause
/* What was measured in repetitions of the same work: metrics, and the time of each function. */
#ifndef VPROF_PROFILE_MEASUREMENTS_H
#define VPROF_PROFILE_MEASUREMENTS_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/profile/mode.h"

/* Something measured in each repetition: a metric ("guest"), or the time of a function. */
struct series {
	char *name;   /* without the suffixes that compilers give to copies: ".constprop.0", ".isra.0", ".cold" */
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
/* Removes the metrics that some repetition does not have. */
void measurements_drop_partial(struct measurements *measurements);
struct series *measurements_add_function(struct measurements *measurements, const char *name, const char *module,
                                         enum profile_mode mode);

/*
 * Turns the functions' values into percent of the first metric of their repetition, since a machine that is slower for
 * a while is slower in all of them. Only the first metric is kept, as 100.
 */
void measurements_to_shares(struct measurements *measurements);

/* Whether the values need no statistics: they are exact, and would be the same in one repetition more. */
bool measurements_exact(const struct measurements *measurements, const struct series *series);

#endif
