// SPDX-License-Identifier: BSD-2-Clause
/*
 * Time in slices of a power of two of nanoseconds, aligned to it, as far as samples reach: where there would be too
 * many, two, four, ... become one.
 */
#ifndef VPROF_PROFILE_SLICES_H
#define VPROF_PROFILE_SLICES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define SLICES_SHIFT_AT_FIRST 10u /* slices of 1024 ns */

struct slices {
	unsigned shift;       /* a slice has 1 << shift ns; SLICES_SHIFT_AT_FIRST to begin with */
	uint64_t first, last; /* those with a sample; 0 before the first one */
};

static inline uint64_t slices_ns(const struct slices *slices)
{
	return UINT64_C(1) << slices->shift;
}

static inline uint64_t slices_at(const struct slices *slices, uint64_t time_ns)
{
	return time_ns >> slices->shift;
}

/* Makes every slice `bits` powers of two longer. */
static inline void slices_join(struct slices *slices, unsigned bits)
{
	slices->shift += bits;
	slices->first >>= bits;
	slices->last >>= bits;
}

/* Reaches to a sample's time. Returns by how many bits slices must be joined (slices_join) to stay within `max`. */
static inline unsigned slices_reach(struct slices *slices, uint64_t time_ns, bool is_first, uint64_t max)
{
	const uint64_t slice = slices_at(slices, time_ns);
	unsigned bits = 0;

	slices->first = is_first ? slice : MIN(slices->first, slice);
	slices->last = is_first ? slice : MAX(slices->last, slice);
	while ((slices->last >> bits) - (slices->first >> bits) >= max)
		bits++;
	return bits;
}

#endif
