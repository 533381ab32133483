// SPDX-License-Identifier: BSD-2-Clause
/* The reader's side of a vCPU's ring. Layout and rules: vprof/ring.h. The producer's side is stream/ring.h. */
#ifndef VPROF_RECORD_RING_READER_H
#define VPROF_RECORD_RING_READER_H

#include <glib.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

struct ring_reader;

/*
 * Maps a ring memfd, sealed against shrinking if it allows seals; its size and header are checked. The descriptor stays
 * the caller's. Errors: RECORDING_ERROR_IO, and RECORDING_ERROR_FORMAT for what is no ring.
 */
struct ring_reader *ring_reader_open(int memfd, GError **error);
/* The same for the ring of a perf event; its descriptor does not tell its size: a power of two, at least a page. */
struct ring_reader *ring_reader_open_perf(int perf_fd, size_t data_bytes, GError **error);
void ring_reader_free(struct ring_reader *reader);

/*
 * The next record, valid until the next call: a private copy, so that what was checked is what is used. NULL when there
 * is none now, or when the ring is corrupt (ring_reader_corrupt).
 */
const struct perf_event_header *ring_reader_next(struct ring_reader *reader, size_t *bytes);

/* Gives the space of all records returned so far back to the producer. */
void ring_reader_release(struct ring_reader *reader);

bool ring_reader_corrupt(const struct ring_reader *reader);

#endif
