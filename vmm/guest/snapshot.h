// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pieces of a guest's virtual memory at one moment, for a call chain that is walked after the guest has gone on. Their
 * contents are as hostile as guest memory.
 */
#ifndef VPROF_GUEST_SNAPSHOT_H
#define VPROF_GUEST_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"

#define SNAPSHOT_SPANS_MAX 264u /* enough for UNWIND_DEPTH_MAX frames that each cross a page end */

struct snapshot_span {
	uint64_t gva;
	size_t bytes;
	const uint8_t *data; /* borrowed */
};

/* Starts as zero, which is empty. */
struct snapshot {
	size_t n;
	struct snapshot_span spans[SNAPSHOT_SPANS_MAX];
};

/* False when there is no room for it. `data` is borrowed. */
bool snapshot_add(struct snapshot *snapshot, gva_t gva, const void *data, size_t bytes);

/* Copies `bytes` from `from`, across spans if needed; false, with `to` undefined, when any byte is in no span. */
bool snapshot_read(const struct snapshot *snapshot, gva_t from, void *to, size_t bytes);

#endif
