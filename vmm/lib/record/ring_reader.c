// SPDX-License-Identifier: BSD-2-Clause
/*
 * The producer is another process: what it writes may change at any time and mean anything. So sizes are taken once,
 * every record is copied before it is looked at, and the read position lives in memory of our own.
 */
#include "lib/record/ring_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vprof/ring.h>

#include "lib/record/record.h"
#include "lib/record/writer.h"

/* [I] immutable after open, [c] consumer thread only. Shared with the producer: *page and *data. */
struct ring_reader {
	struct perf_event_mmap_page *page; /* [I] */
	const uint8_t *data;               /* [I] */
	uint64_t data_bytes;               /* [I] power of two */
	size_t map_bytes;                  /* [I] */
	uint64_t position;                 /* [c] behind the record returned last; counts bytes like data_tail */
	uint64_t head;                     /* [c] as last loaded; position <= head <= position + data_bytes */
	bool corrupt;                      /* [c] */
	uint64_t copy[(RECORD_BYTES_MAX + 8) / 8]; /* [c] */
};

static bool ring_layout_check(const struct perf_event_mmap_page *page, uint64_t file_bytes, uint64_t *data_bytes,
                              GError **error)
{
	const uint64_t offset = __atomic_load_n(&page->data_offset, __ATOMIC_RELAXED);
	const uint64_t bytes = __atomic_load_n(&page->data_size, __ATOMIC_RELAXED);

	if (offset != VPROF_RING_HEADER_BYTES || bytes < VPROF_RING_DATA_BYTES_MIN ||
	    bytes > VPROF_RING_DATA_BYTES_MAX || (bytes & (bytes - 1)) || bytes > file_bytes - offset) {
		g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT,
		            "cannot use ring: its header gives %" G_GUINT64_FORMAT
		            " bytes of data at offset %" G_GUINT64_FORMAT ", and it has %" G_GUINT64_FORMAT
		            " bytes; the engine is of another version or damaged",
		            bytes, offset, file_bytes);
		return false;
	}
	*data_bytes = bytes;
	return true;
}

static struct ring_reader *ring_map(int fd, size_t map_bytes, GError **error)
{
	uint64_t data_bytes;

	void *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED) {
		g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_IO, "cannot map ring: %s", g_strerror(errno));
		return NULL;
	}
	if (!ring_layout_check(map, map_bytes, &data_bytes, error)) {
		munmap(map, map_bytes);
		return NULL;
	}
	struct ring_reader *reader = g_new0(struct ring_reader, 1);
	reader->page = map;
	reader->data = (const uint8_t *)map + VPROF_RING_HEADER_BYTES;
	reader->data_bytes = data_bytes;
	reader->map_bytes = map_bytes;
	reader->position = reader->head = __atomic_load_n(&reader->page->data_tail, __ATOMIC_RELAXED);
	return reader;
}

struct ring_reader *ring_reader_open(int memfd, GError **error)
{
	struct stat status;

	if (fstat(memfd, &status) != 0) {
		g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_IO, "cannot stat ring: %s", g_strerror(errno));
		return NULL;
	}
	if (status.st_size < (off_t)(VPROF_RING_HEADER_BYTES + VPROF_RING_DATA_BYTES_MIN) ||
	    status.st_size > (off_t)(VPROF_RING_HEADER_BYTES + VPROF_RING_DATA_BYTES_MAX)) {
		g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT,
		            "cannot use ring: it has %jd bytes, which no ring has", (intmax_t)status.st_size);
		return NULL;
	}
	/* A ring that shrinks would kill its reader with SIGBUS. */
	(void)fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK);
	int seals = fcntl(memfd, F_GET_SEALS);

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
		g_set_error_literal(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT,
		                    "cannot use ring: its engine could make it shorter while it is read");
		return NULL;
	}
	return ring_map(memfd, (size_t)status.st_size, error);
}

struct ring_reader *ring_reader_open_perf(int perf_fd, size_t data_bytes, GError **error)
{
	return ring_map(perf_fd, VPROF_RING_HEADER_BYTES + data_bytes, error);
}

void ring_reader_free(struct ring_reader *reader)
{
	if (!reader)
		return;
	munmap(reader->page, reader->map_bytes);
	g_free(reader);
}

/* Copies bytes of the data area that may wrap around its end. */
static void ring_copy(const struct ring_reader *reader, uint64_t from, void *to, size_t bytes)
{
	const size_t offset = from & (reader->data_bytes - 1);
	const size_t before_end = MIN(bytes, reader->data_bytes - offset);

	memcpy(to, reader->data + offset, before_end);
	memcpy((uint8_t *)to + before_end, reader->data, bytes - before_end);
}

/* Whether there are bytes to read; takes the producer's head when all up to the last one is read. */
static bool ring_has_bytes(struct ring_reader *reader)
{
	if (reader->position != reader->head)
		return true;
	/* Acquire: pairs with the producer's release store, so that the bytes below head are there. */
	const uint64_t head = __atomic_load_n(&reader->page->data_head, __ATOMIC_ACQUIRE);
	/* A head that went back gives a huge difference too. */
	reader->corrupt = head - reader->position > reader->data_bytes || head % 8;
	if (reader->corrupt)
		return false;
	reader->head = head;
	return reader->position != reader->head;
}

const struct perf_event_header *ring_reader_next(struct ring_reader *reader, size_t *bytes)
{
	struct perf_event_header header;

	if (reader->corrupt || !ring_has_bytes(reader))
		return NULL;
	ring_copy(reader, reader->position, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 || header.size > reader->head - reader->position) {
		reader->corrupt = true;
		return NULL;
	}
	memcpy(reader->copy, &header, sizeof(header));
	ring_copy(reader, reader->position + sizeof(header), (uint8_t *)reader->copy + sizeof(header),
	          header.size - sizeof(header));
	reader->position += header.size;
	*bytes = header.size;
	return (const struct perf_event_header *)(const void *)reader->copy;
}

void ring_reader_release(struct ring_reader *reader)
{
	/* Release: pairs with the producer's acquire load; our copies are made before it may reuse the space. */
	__atomic_store_n(&reader->page->data_tail, reader->position, __ATOMIC_RELEASE);
}

bool ring_reader_corrupt(const struct ring_reader *reader)
{
	return reader->corrupt;
}
