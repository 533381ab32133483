// SPDX-License-Identifier: BSD-2-Clause
/* Records in a ring of this process, as one sees them who reads beside the ring's reader or in his place. */
#ifndef VPROF_SAMPLE_RING_VIEW_H
#define VPROF_SAMPLE_RING_VIEW_H

#include "sample/ring.h"

/*
 * Whole records from *offset on, as many as fit; returns their bytes. What has been overwritten is left out: *offset
 * then becomes the place of the oldest record that its reader has not given back. 0: there are none, *offset is no
 * place of a record, or the ring's reader has spoilt it.
 */
size_t ring_view_read(const struct ring *ring, uint64_t *offset, void *to, size_t room);

/*
 * Gives back what is before `offset`, in the reader's place; no error if it has been given back. False when no record
 * begins there.
 */
bool ring_view_give_back(struct ring *ring, uint64_t offset);

/* How many records the reader has not given back, PERF_RECORD_LOST not counted; looks at every one of them. */
uint64_t ring_view_unread(const struct ring *ring);

#endif
