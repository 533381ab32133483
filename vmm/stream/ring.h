// SPDX-License-Identifier: BSD-2-Clause
/* The producer's side of a vCPU's ring. Layout and rules: vprof/ring.h. The reader's side is lib/record/ring_reader.h.
 */
#ifndef VPROF_STREAM_RING_H
#define VPROF_STREAM_RING_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/record.h"

/* PERF_RECORD_LOST and PERF_RECORD_LOST_SAMPLES with the sample_id of VPROF_SAMPLE_TYPE: 56 and 48 bytes. */
#define RING_LOST_BYTES_MAX 104u

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

/* The eventfd is signalled each time that this many more bytes are unread; 1..data_bytes, a quarter at first. */
void ring_set_watermark(struct ring *ring, size_t bytes);

/*
 * Copies one record (a struct perf_event_header first, size a multiple of 8) into the ring. False when there is no
 * room: the record is dropped and counted, and the next record that fits is preceded by a PERF_RECORD_LOST with the
 * number of dropped ones and a PERF_RECORD_LOST_SAMPLES with the number of samples among them, both with `lost_id`.
 * There is no room in the last RING_LOST_BYTES_MAX bytes, for ring_write_lost. Producer thread only; wait-free; no
 * allocation; at most one write(2), to the eventfd.
 */
bool ring_write(struct ring *ring, const void *record, size_t bytes, const struct record_id *lost_id);

/*
 * Whether ring_write has room for a record of so many bytes, and for what it says of lost ones before it. Producer
 * thread only.
 */
bool ring_has_room(const struct ring *ring, size_t bytes);

/*
 * Writes both records for what was dropped since the last one. False when the ring is still full; not with
 * `last`, for which there is always room once, so that a ring that is full and no longer read says what was lost.
 */
bool ring_write_lost(struct ring *ring, const struct record_id *lost_id, bool last);

/*
 * Signals the eventfd if anything was written since the last signal, whatever the watermark; returns whether there was.
 * Producer thread only.
 */
bool ring_hand_over(struct ring *ring);

/* Signals the eventfd whatever the watermark, so that the reader takes what is there. Any thread. */
void ring_wake(struct ring *ring);

struct ring_statistics {
	uint64_t records;     /* written; those about lost ones not counted */
	uint64_t dropped;     /* found no room */
	uint64_t handed_over; /* times that the eventfd was signalled with something to read */
	uint64_t full_times;  /* runs of dropped records: a PERF_RECORD_LOST each */
};
/* Any thread; each statistic by itself is exact. */
struct ring_statistics ring_statistics(const struct ring *ring);

/* Where the next record will begin, in bytes since the ring was made. Any thread. */
uint64_t ring_head(const struct ring *ring);
/* Bytes that the reader has not released; all of them when its tail is invalid. Any thread. */
size_t ring_unread(const struct ring *ring);

/* It is as full as its watermark, or scarce: its reader is due, whatever else it waits for. Any thread. */
bool ring_is_due(const struct ring *ring);

/*
 * Less than a quarter is free: a producer that stalls pauses now. Half is free again: it goes on. Any thread.
 */
bool ring_is_scarce(const struct ring *ring);
bool ring_has_recovered(const struct ring *ring);

/* For a reader in this process, beside the one that owns data_tail or in its place. Any thread. */

/*
 * Copies whole records from *offset on, as many as fit; returns their bytes. If records were overwritten, *offset
 * becomes the oldest that the reader has not released. Returns 0 when there is nothing to copy, no record begins at
 * *offset, or the reader has corrupted the ring.
 */
size_t ring_view_read(const struct ring *ring, uint64_t *offset, void *to, size_t room);

/*
 * Releases what is before `offset`, in the reader's place; no error if it was released before. False when no record
 * begins there.
 */
bool ring_view_give_back(struct ring *ring, uint64_t offset);

/* How many records the reader has not released, without those about lost ones; reads every one of them. */
uint64_t ring_view_unread(const struct ring *ring);

#endif
