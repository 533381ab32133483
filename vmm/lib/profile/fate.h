// SPDX-License-Identifier: BSD-2-Clause
/* What has become of functions that only one of two sets of measurements has: guesses from names and times. */
#ifndef VPROF_PROFILE_FATE_H
#define VPROF_PROFILE_FATE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/profile/measurements.h"
#include "lib/profile/shift.h"

/* What has become of a function with a name, module and mode that only one of the sets has, by names and times. */
enum fate { FATE_KEPT, FATE_RENAMED, FATE_INLINED, FATE_SPLIT, FATE_NEW, FATE_GONE };

/* A metric or function in both sets. */
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
	return change->base ? change->base : change->now;
}

/* "kept", "renamed", "inlined", "split", "new", "gone". */
const char *fate_name(enum fate fate);

/* Two functions that belong together, by their numbers in the arrays that were given. */
struct fate_pair {
	guint left, right;
	double distance; /* the nearest are paired first, and each once */
};

/*
 * Pairs of a function that is gone (left) and a new one (right) that are the same function under another name or in
 * another module. The new one has the same mode and takes half to twice the time. Its name is the same, in another
 * module; or it is in the same module and the names are alike: one has further words in front or behind, at most half
 * of it, or both share two thirds of their letters, counted from both ends. The names that are most alike come first.
 * Array of struct fate_pair, owned by the caller.
 */
GArray *fate_find_renamed(const struct change *only, size_t n);

/*
 * Sets the fate of each change in `only`: renamed if it has a base and a now; inlined if it is gone and a function of
 * its module and mode has grown by its time, give or take a quarter, in a change that stands; split if it is new and
 * such a function has shrunk by its time; else new or gone.
 */
void fate_decide(struct change *only, size_t n_only, const struct change *functions, size_t n_functions);

#endif
