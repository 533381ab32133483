// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_TEST_SUPPORT_NOISE_H
#define VPROF_TEST_SUPPORT_NOISE_H

/* Made noise of measurements, the same in every run. */

#include <glib.h>
#include <math.h>

static GRand *dice;

static inline void noise_start(guint32 seed)
{
	dice = g_rand_new_with_seed(seed);
}

static inline void noise_end(void)
{
	g_rand_free(dice);
}

static inline double normal(void)
{
	return sqrt(-2 * log(1 - g_rand_double(dice))) * cos(2 * G_PI * g_rand_double(dice));
}

/* A machine that is shared: mostly a little noise, now and then a repetition that something else ran into. */
static inline double disturbed(void)
{
	return g_rand_double(dice) < 0.1 ? fabs(normal()) * 20 : normal();
}

static inline double skewed(void)
{
	return exp(normal());
}

#endif
