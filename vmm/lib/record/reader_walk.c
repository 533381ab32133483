// SPDX-License-Identifier: BSD-2-Clause
/* The walk over a recording's records. */
#include <string.h>
#include <sys/mman.h>

#include "lib/record/reader_priv.h"
#include "lib/record/unpack.h"

/* Records of `perf record -z` shrink to a tenth; a file made for it could stand for ten thousand times its size. */
#define UNPACKED_TIMES_MAX 256

/* A step of unpacking: room for what is left of a record that is not whole, and for more than one besides. */
#define UNPACKED_BYTES ((size_t)4 * (RECORD_BYTES_MAX + 8))

/* How much of the mapped file stays in memory behind the walk, at most: recordings may be larger than that. */
#define BEHIND_BYTES (UINT64_C(16) << 20)
#define PAGE_BYTES 4096u

enum walk_end {
	WALK_DONE,      /* all whole records were delivered */
	WALK_STOPPED,   /* `each` had enough */
	WALK_MALFORMED, /* `what` says why */
};

struct walk {
	bool (*each)(const struct perf_event_header *record, size_t bytes, void *data);
	void *data;
	const char *what;
	const uint8_t *behind;     /* what the walk has let go of ends here, at a page's start */
	struct unpacker *unpacker; /* these three once a compressed record was met */
	size_t n_unpacked;
	uint64_t unpacked_left;                 /* of what the file may stand for */
	uint64_t *unpacked;                     /* UNPACKED_BYTES */
	uint64_t aligned[(UINT16_MAX + 1) / 8]; /* for a record that stands at an odd place */
};

static enum walk_end malformed(struct walk *walk, const char *what)
{
	walk->what = what;
	return WALK_MALFORMED;
}

/* `each` may look at the record's fields in place, so it gets them aligned. */
static bool deliver(struct walk *walk, const uint8_t *at, size_t bytes)
{
	const void *record = at;

	if ((uintptr_t)at % 8) {
		memcpy(walk->aligned, at, bytes);
		record = walk->aligned;
	}
	return walk->each(record, bytes, walk->data);
}

static bool is_compressed(uint32_t type)
{
	return type == RECORD_COMPRESSED || type == RECORD_COMPRESSED2;
}

enum extent {
	EXTENT_WHOLE,
	EXTENT_PARTIAL, /* its end lies beyond the bytes */
	EXTENT_BAD,     /* no record has such a size, or it cannot stand here */
};

/*
 * Takes the header of the record at `at`; *bytes: of the record and the data behind it that its size does not count.
 * Only the size of compressed records need not be a multiple of 8. What was unpacked holds neither them nor
 * AUX data, which may be longer than the buffer.
 */
static enum extent record_extent(const uint8_t *at, uint64_t left, bool packed, struct perf_event_header *header,
                                 uint64_t *bytes)
{
	uint64_t follows = 0;

	if (left < sizeof(*header))
		return EXTENT_PARTIAL;
	memcpy(header, at, sizeof(*header));
	if (header->size < sizeof(*header) || (header->size % 8 && !is_compressed(header->type)))
		return EXTENT_BAD;
	if (packed && (is_compressed(header->type) || header->type == RECORD_AUXTRACE))
		return EXTENT_BAD;
	if (header->size > left)
		return EXTENT_PARTIAL;
	if (header->type == RECORD_AUXTRACE) {
		if (header->size < sizeof(*header) + sizeof(follows))
			return EXTENT_BAD;
		memcpy(&follows, at + sizeof(*header), sizeof(follows));
		if (follows > left - header->size)
			return EXTENT_PARTIAL;
	}
	*bytes = header->size + follows;
	return EXTENT_WHOLE;
}

static enum walk_end walk_compressed(struct walk *walk, const uint8_t *at, const struct perf_event_header *header);

/* The mapping is private and never written to: these pages have the file's bytes when they are read again. */
static void let_go(struct walk *walk, const uint8_t *at)
{
	if ((uint64_t)(at - walk->behind) < BEHIND_BYTES)
		return;
	madvise((void *)walk->behind, BEHIND_BYTES, MADV_DONTNEED);
	walk->behind += BEHIND_BYTES;
}

/* *used: up to the first record that is not delivered. `packed`: these bytes came out of a compressed record. */
static enum walk_end walk_bytes(struct walk *walk, const uint8_t *bytes, uint64_t n, bool packed, uint64_t *used)
{
	struct perf_event_header header;
	uint64_t record_bytes;
	enum walk_end end;

	for (*used = 0;; *used += record_bytes) {
		const uint8_t *at = bytes + *used;
		const enum extent extent = record_extent(at, n - *used, packed, &header, &record_bytes);

		if (!packed)
			let_go(walk, at);
		if (extent == EXTENT_PARTIAL)
			return WALK_DONE;
		if (extent == EXTENT_BAD)
			return malformed(walk, "a record has an impossible size or place");
		if (is_compressed(header.type))
			end = walk_compressed(walk, at, &header);
		else
			end = deliver(walk, at, header.size) ? WALK_DONE : WALK_STOPPED;
		if (end != WALK_DONE)
			return end;
	}
}

/* The packed bytes of a record: RECORD_COMPRESSED2 says how many of them there are before its padding. */
static bool compressed_payload(const uint8_t **at, const struct perf_event_header *header, size_t *n)
{
	uint64_t bytes;

	*at += sizeof(*header);
	*n = header->size - sizeof(*header);
	if (header->type == RECORD_COMPRESSED)
		return true;
	if (*n < sizeof(bytes))
		return false;
	memcpy(&bytes, *at, sizeof(bytes));
	*at += sizeof(bytes);
	*n -= sizeof(bytes);
	if (bytes > *n)
		return false;
	*n = bytes;
	return true;
}

/* The stream goes on from one compressed record to the next, and so may a record that comes out of it. */
static enum walk_end walk_compressed(struct walk *walk, const uint8_t *at, const struct perf_event_header *header)
{
	size_t n, room, unpacked;
	uint64_t used;

	if (!walk->unpacked) {
		walk->unpacker = unpacker_new();
		walk->unpacked = g_malloc(UNPACKED_BYTES);
	}
	if (!walk->unpacker)
		return malformed(
			walk,
			"it is compressed, and this vprof was built without libzstd; record without compression (perf record without -z)");
	if (!compressed_payload(&at, header, &n))
		return malformed(walk, "a compressed record has an impossible size");
	do {
		uint8_t *buffer = (uint8_t *)walk->unpacked;

		room = UNPACKED_BYTES - walk->n_unpacked;
		if (!unpacker_step(walk->unpacker, &at, &n, buffer + walk->n_unpacked, room, &unpacked))
			return malformed(walk, "a compressed record is damaged");
		if (unpacked > walk->unpacked_left)
			return malformed(walk,
			                 "it unpacks to more than " G_STRINGIFY(UNPACKED_TIMES_MAX) " times its size");
		walk->unpacked_left -= unpacked;
		walk->n_unpacked += unpacked;
		enum walk_end end = walk_bytes(walk, buffer, walk->n_unpacked, true, &used);
		if (end != WALK_DONE)
			return end;
		walk->n_unpacked -= used;
		memmove(buffer, buffer + used, walk->n_unpacked);
	} while (n || unpacked == room);
	return WALK_DONE;
}

bool recording_each(struct recording *recording,
                    bool (*each)(const struct perf_event_header *record, size_t bytes, void *data), void *data,
                    GError **error)
{
	struct walk *walk = g_new0(struct walk, 1);
	const uint64_t start = recording->header.data.offset;
	const uint64_t bytes = recording->data_end - start;
	uint64_t used;

	walk->each = each;
	walk->data = data;
	walk->unpacked_left = recording->n_bytes * UNPACKED_TIMES_MAX;
	walk->behind = recording->bytes + start / PAGE_BYTES * PAGE_BYTES;
	enum walk_end end = walk_bytes(walk, recording->bytes + start, bytes, false, &used);
	if (end == WALK_DONE && !recording->cut_off && (used < bytes || walk->n_unpacked))
		end = malformed(walk, "the last record is not whole");
	if (mapped_file_is_cut(recording->file))
		end = malformed(walk, "it became shorter while it was read");
	if (end == WALK_MALFORMED)
		g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT,
		            "cannot read %s beyond byte %" G_GUINT64_FORMAT ": %s", recording->path, start + used,
		            walk->what);
	unpacker_free(walk->unpacker);
	g_free(walk->unpacked);
	g_free(walk);
	return end != WALK_MALFORMED;
}
