// SPDX-License-Identifier: BSD-2-Clause
/* The producer's side of a vCPU's ring. Layout and rules: vprof/ring.h. The reader's side is lib/record/ring_reader.h.
 */
#ifndef VPROF_SAMPLE_RING_H
#define VPROF_SAMPLE_RING_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

/* data_bytes: a power of two, VPROF_RING_DATA_BYTES_MIN..MAX. The memfd and the eventfd belong to the ring. */
struct ring *ring_new(size_t data_bytes, GError **error);
void ring_free(struct ring *ring);

int ring_memfd(const struct ring *ring);
int ring_eventfd(const struct ring *ring);
size_t ring_data_bytes(const struct ring *ring);

/* The eventfd is signalled when this many bytes are unread; 1..data_bytes. */
void ring_set_watermark(struct ring *ring, size_t bytes);

/*
 * Copies one record (a struct perf_event_header first, size a multiple of 8) into the ring. False when there is no
 * room: the record is dropped and counted, and the next record that fits is preceded by a PERF_RECORD_LOST for `id` at
 * `time_ns`. Producer thread only; wait-free; no allocation; at most one write(2), to the eventfd.
 */
bool ring_write(struct ring *ring, const void *record, size_t bytes, uint64_t id, uint64_t time_ns);

/* Signals the eventfd whatever the watermark says, so that a reader takes what is there. Any thread. */
void ring_wake(struct ring *ring);

struct ring_totals {
	uint64_t records; /* written */
	uint64_t dropped; /* found no room */
};
/* Any thread; each figure by itself is exact. */
struct ring_totals ring_totals(const struct ring *ring);

#endif
