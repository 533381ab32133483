// SPDX-License-Identifier: BSD-2-Clause
/* The producer's side of a vCPU's ring. Layout and rules: vprof/ring.h. The reader's side is lib/record/ring_reader.h.
 */
#ifndef VPROF_SAMPLE_RING_H
#define VPROF_SAMPLE_RING_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/record.h"

#define RING_LOST_BYTES_MAX 64u /* PERF_RECORD_LOST with the sample_id of VPROF_SAMPLE_TYPE has 56 */

struct ring;

/*
 * data_bytes: a power of two, VPROF_RING_DATA_BYTES_MIN..MAX. The memfd and the eventfd belong to the ring. Errors:
 * G_FILE_ERROR.
 */
struct ring *ring_new(size_t data_bytes, GError **error);
void ring_free(struct ring *ring);

int ring_memfd(const struct ring *ring);
int ring_eventfd(const struct ring *ring);
size_t ring_data_bytes(const struct ring *ring);

/* The eventfd is signalled when this many bytes are unread, once for as many; 1..data_bytes, at first a quarter. */
void ring_set_watermark(struct ring *ring, size_t bytes);

/*
 * Copies one record (a struct perf_event_header first, size a multiple of 8) into the ring. False when there is no
 * room: the record is dropped and counted, and the next record that fits is preceded by a PERF_RECORD_LOST with their
 * number and `lost_id`. Producer thread only; wait-free; no allocation; at most one write(2), to the eventfd.
 */
bool ring_write(struct ring *ring, const void *record, size_t bytes, const struct record_id *lost_id);

/* At the end: the PERF_RECORD_LOST of what was dropped and has had no successor. False when the ring is still full. */
bool ring_write_lost(struct ring *ring, const struct record_id *lost_id);

/*
 * Signals the eventfd if there is anything since it last was, whatever the watermark says; whether it has. Producer
 * thread only.
 */
bool ring_hand_over(struct ring *ring);

/* Signals the eventfd whatever the watermark says, so that a reader takes what is there. Any thread. */
void ring_wake(struct ring *ring);

struct ring_statistics {
	uint64_t records;     /* written; PERF_RECORD_LOST not counted */
	uint64_t dropped;     /* found no room */
	uint64_t handed_over; /* times that the eventfd was signalled because there was something to read */
	uint64_t full_times;  /* runs of dropped records: a PERF_RECORD_LOST each */
};
/* Any thread; each statistic by itself is exact. */
struct ring_statistics ring_statistics(const struct ring *ring);

/* Where the next record will begin, in bytes since the ring was made; always where a record ends. Any thread. */
uint64_t ring_head(const struct ring *ring);
/* Bytes that the reader has not given back; if he cannot be believed, all of them. Any thread. */
size_t ring_unread(const struct ring *ring);

/* For a reader in this process, beside the one that owns data_tail or in its place. Any thread. */

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
