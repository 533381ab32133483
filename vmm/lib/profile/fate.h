// SPDX-License-Identifier: BSD-2-Clause
/* Guesses, from names and times, at what has become of functions that only one of two sets of measurements has. */
#ifndef VPROF_PROFILE_FATE_H
#define VPROF_PROFILE_FATE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/profile/measurements.h"
#include "lib/profile/shift.h"

/* What has become of a function with a name, module and mode that only one of the sets has, by names and times. */
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

/* What it is of base, or else of now. */
static inline const struct series *change_series(const struct change *change)
{
	return change->base != NULL ? change->base : change->now;
}

/* "kept", "renamed", "inlined", "split", "new", "gone". */
const char *fate_name(enum fate fate);

/* Two that belong together, by where they stand in what was asked about. */
struct fate_pair {
	guint left, right;
	double distance; /* the nearest are paired first, and each once */
};

/*
 * Of functions that only one side has, those that are one, what is gone on the left: what is new takes half to twice
 * its time, in the same mode, and either has its name, in another module, or is in its module under a name like it:
 * with words in front or behind that make at most half of it, or with two thirds of its letters at both ends. The names
 * that are most alike first. Array of struct fate_pair, owned by the caller.
 */
GArray *fate_find_renamed(const struct change *only, size_t n);

/*
 * Sets the fate of each of `only`. With a base and a now: renamed. Gone, and another in its module and mode has grown,
 * as a change that stands, by its time, give or take a quarter: inlined into that one. New, and another has shrunk so:
 * split off it. Else new or gone.
 */
void fate_decide(struct change *only, size_t n_only, const struct change *functions, size_t n_functions);

#endif
