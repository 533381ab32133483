// SPDX-License-Identifier: BSD-2-Clause
/* Guesses, from names and times, at what has become of functions that only one of two sets of measurements has. */
#ifndef VPROF_PROFILE_FATE_H
#define VPROF_PROFILE_FATE_H

#include <glib.h>

#include "lib/profile/comparison.h"

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
