// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ranges of guest addresses. The last byte of the address space can be mapped, so that the end of a range may not be an
 * address: a range is its first address and its length, and these functions are all the arithmetic that walks need.
 */
#ifndef VPROF_GUEST_GVA_RANGE_H
#define VPROF_GUEST_GVA_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct gva_range {
	uint64_t first, bytes; /* within gva_room(first); 0 bytes: nothing */
};

/* The bytes from `first` to the last address, that one included; of all 2^64, one too few. */
static inline uint64_t gva_room(uint64_t first)
{
	return first == 0 ? UINT64_MAX : -first;
}

/* From `first` to the end of the address space at most. */
static inline struct gva_range gva_range_cut(uint64_t first, uint64_t bytes)
{
	return (struct gva_range){first, bytes < gva_room(first) ? bytes : gva_room(first)};
}

/* All that [first, stop) has; nothing where `stop` is not above `first`. */
static inline struct gva_range gva_range_to(uint64_t first, uint64_t stop)
{
	return (struct gva_range){first, stop > first ? stop - first : 0};
}

static inline bool gva_range_has(struct gva_range range, uint64_t gva)
{
	return gva - range.first < range.bytes;
}

/* The bytes of the range from `gva` on, which is in it. */
static inline uint64_t gva_range_left(struct gva_range range, uint64_t gva)
{
	return range.bytes - (gva - range.first);
}

/* Whether all of `part`, which may have no bytes, is in the range. */
static inline bool gva_range_holds(struct gva_range range, struct gva_range part)
{
	return part.first - range.first <= range.bytes && part.bytes <= gva_range_left(range, part.first);
}

/* Whether `next` begins where the range ends. */
static inline bool gva_range_meets(struct gva_range range, uint64_t next)
{
	return range.bytes > 0 && range.bytes <= UINT64_MAX - range.first && range.first + range.bytes == next;
}

#endif
