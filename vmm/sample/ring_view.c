// SPDX-License-Identifier: BSD-2-Clause
#include "sample/ring_view.h"

#define VIEW_BYTES 65536u
#define OVERTAKEN_MAX 8u /* in a row: by a producer that is faster than we can copy */

/* Bytes of the whole records at the start of what was copied. */
static size_t whole_records(const void *bytes, size_t n, uint64_t *records)
{
	size_t at = 0;

	for (const struct perf_event_header *record; (record = record_check((const uint8_t *)bytes + at, n - at));) {
		at += record->size;
		*records += record->type != PERF_RECORD_LOST;
	}
	return at;
}

static uint64_t oldest(const struct ring *ring)
{
	return ring_head(ring) - ring_unread(ring);
}

static size_t read_records(const struct ring *ring, uint64_t *offset, void *to, size_t room, uint64_t *records)
{
	for (unsigned i = 0; i < OVERTAKEN_MAX; i++) {
		size_t n = room;

		if (ring_peek(ring, *offset, to, &n))
			return whole_records(to, n, records);
		*offset = oldest(ring);
	}
	return 0;
}

size_t ring_view_read(const struct ring *ring, uint64_t *offset, void *to, size_t room)
{
	uint64_t records = 0;

	return read_records(ring, offset, to, room, &records);
}

/* Walks from the oldest record to `end`; where it gets to. */
static uint64_t walk(const struct ring *ring, uint64_t end, uint64_t *records)
{
	g_autofree uint64_t *bytes = g_malloc(VIEW_BYTES);
	uint64_t offset = oldest(ring);

	while (end - offset - 1 < ring_data_bytes(ring)) { /* not past it, whatever the reader does meanwhile */
		size_t n = read_records(ring, &offset, bytes, (size_t)MIN(end - offset, VIEW_BYTES), records);

		if (n == 0)
			break;
		offset += n;
	}
	return offset;
}

uint64_t ring_view_unread(const struct ring *ring)
{
	uint64_t records = 0;

	walk(ring, ring_head(ring), &records);
	return records;
}

bool ring_view_give_back(struct ring *ring, uint64_t offset)
{
	uint64_t records = 0;

	if (ring_head(ring) - offset >= ring_unread(ring))
		return true;
	if (walk(ring, offset, &records) != offset)
		return false;
	ring_release(ring, offset);
	return true;
}
