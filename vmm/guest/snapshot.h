// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pieces of a guest's virtual memory as they were at one moment, for a call chain that is walked when the guest has
 * gone on. What they hold is the guest's own, and as hostile as its memory.
 */
#ifndef VPROF_GUEST_SNAPSHOT_H
#define VPROF_GUEST_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"

#define SNAPSHOT_SPANS_MAX 264u /* a chain of UNWIND_DEPTH_MAX frames, each across a page's end, and more */

struct snapshot_span {
	uint64_t gva;
	size_t bytes;
	const uint8_t *data; /* borrowed */
};

/* All zero: an empty one, of which nothing can be read. */
struct snapshot {
	size_t n;
	struct snapshot_span spans[SNAPSHOT_SPANS_MAX];
};

/* False when there is no room for it. `data` is borrowed. */
bool snapshot_add(struct snapshot *snapshot, gva_t gva, const void *data, size_t bytes);

/* Copies `bytes` from `from`, which may lie in several spans; false, with `to` undefined, when any of it is in none. */
bool snapshot_read(const struct snapshot *snapshot, gva_t from, void *to, size_t bytes);

#endif
