// SPDX-License-Identifier: BSD-2-Clause
#include "sample/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vprof/ring.h>

/* [I] immutable after ring_new, [p] producer thread only, [a] atomic, [s] shared with the reader's process. */
struct ring {
	int memfd;                         /* [I] */
	int eventfd;                       /* [I] */
	size_t data_bytes;                 /* [I] */
	struct perf_event_mmap_page *page; /* [s] */
	uint8_t *data;                     /* [s] */
	uint64_t head;                     /* [p] the truth of page->data_head */
	uint64_t woken;                    /* [p] head when the eventfd was last signalled */
	uint64_t lost;                     /* [p] dropped since the last PERF_RECORD_LOST */
	_Atomic uint64_t watermark;        /* [a] */
	_Atomic uint64_t records, dropped; /* [a] written by the producer */
};

/* data_head and data_tail are plain __u64 in perf's header; between two processes they are atomics. */
static _Atomic uint64_t *shared_u64(__u64 *field)
{
	_Static_assert(sizeof(_Atomic uint64_t) == sizeof(__u64), "a lock-free 64-bit atomic is a plain one");
	return (_Atomic uint64_t *)field;
}

static bool ring_error(GError **error, const char *what)
{
	int errnum = errno;

	g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(errnum), "cannot make a sample ring: %s: %s", what,
	            g_strerror(errnum));
	return false;
}

/* Seals: whoever gets the descriptor cannot shrink the memory under the producer. */
static bool ring_map(struct ring *ring, GError **error)
{
	size_t bytes = VPROF_RING_HEADER_BYTES + ring->data_bytes;

	ring->memfd = memfd_create("vprof-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ring->memfd < 0)
		return ring_error(error, "memfd_create");
	if (ftruncate(ring->memfd, (off_t)bytes) != 0)
		return ring_error(error, "ftruncate");
	if (fcntl(ring->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return ring_error(error, "sealing");
	/* Populated now: a page fault in the middle of a sample would be part of the guest's time. */
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->memfd, 0);
	if (at == MAP_FAILED)
		return ring_error(error, "mmap");
	ring->page = at;
	ring->data = (uint8_t *)at + VPROF_RING_HEADER_BYTES;
	ring->page->data_offset = VPROF_RING_HEADER_BYTES;
	ring->page->data_size = ring->data_bytes;
	ring->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return ring->eventfd >= 0 || ring_error(error, "eventfd");
}

struct ring *ring_new(size_t data_bytes, GError **error)
{
	if (data_bytes < VPROF_RING_DATA_BYTES_MIN || data_bytes > VPROF_RING_DATA_BYTES_MAX ||
	    (data_bytes & (data_bytes - 1)) != 0) {
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
		            "ring size %zu is out of range; it can be a power of two from %u to %u bytes", data_bytes,
		            VPROF_RING_DATA_BYTES_MIN, VPROF_RING_DATA_BYTES_MAX);
		return NULL;
	}
	struct ring *ring = g_new0(struct ring, 1);

	ring->memfd = ring->eventfd = -1;
	ring->data_bytes = data_bytes;
	atomic_init(&ring->watermark, data_bytes / 4);
	if (!ring_map(ring, error)) {
		ring_free(ring);
		return NULL;
	}
	return ring;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	if (ring->page)
		munmap(ring->page, VPROF_RING_HEADER_BYTES + ring->data_bytes);
	if (ring->memfd >= 0)
		close(ring->memfd);
	if (ring->eventfd >= 0)
		close(ring->eventfd);
	g_free(ring);
}

int ring_memfd(const struct ring *ring)
{
	return ring->memfd;
}

int ring_eventfd(const struct ring *ring)
{
	return ring->eventfd;
}

size_t ring_data_bytes(const struct ring *ring)
{
	return ring->data_bytes;
}

void ring_set_watermark(struct ring *ring, size_t bytes)
{
	atomic_store_explicit(&ring->watermark, CLAMP(bytes, 1, ring->data_bytes), memory_order_relaxed);
}

void ring_wake(struct ring *ring)
{
	const uint64_t one = 1;

	/* EAGAIN: nobody has read 2^64 - 2 wake-ups; one more would tell him nothing. */
	if (write(ring->eventfd, &one, sizeof(one)) < 0)
		return;
}

/* Bytes not given back by the reader. His tail is hostile: ahead of head, or behind by more than a ring, is full. */
static uint64_t ring_unread(const struct ring *ring)
{
	/* Acquire: pairs with the reader's release store of data_tail; he has copied what we now overwrite. */
	uint64_t tail = atomic_load_explicit(shared_u64(&ring->page->data_tail), memory_order_acquire);
	uint64_t unread = ring->head - tail;

	return MIN(unread, ring->data_bytes);
}

/* Behind what was put before; not visible to the reader yet. Returns where the next one goes. */
static uint64_t ring_put(struct ring *ring, uint64_t at, const void *record, size_t bytes)
{
	size_t offset = (size_t)at & (ring->data_bytes - 1);
	size_t first = MIN(bytes, ring->data_bytes - offset);

	memcpy(ring->data + offset, record, first);
	memcpy(ring->data, (const uint8_t *)record + first, bytes - first);
	return at + bytes;
}

static void ring_publish(struct ring *ring, uint64_t head, uint64_t unread, uint64_t records)
{
	uint64_t watermark = atomic_load_explicit(&ring->watermark, memory_order_relaxed);

	ring->head = head;
	/* Release: pairs with the reader's acquire load of data_head; he sees the bytes before it. */
	atomic_store_explicit(shared_u64(&ring->page->data_head), head, memory_order_release);
	/* Only this thread stores them. */
	atomic_store_explicit(&ring->records, atomic_load_explicit(&ring->records, memory_order_relaxed) + records,
	                      memory_order_relaxed);
	if (unread >= watermark && head - ring->woken >= watermark) {
		ring->woken = head;
		ring_wake(ring);
	}
}

static size_t lost_record(const struct ring *ring, const struct record_id *id, uint8_t *to, size_t room)
{
	return ring->lost != 0 ? record_lost_encode(ring->lost, id, to, room) : 0;
}

bool ring_write(struct ring *ring, const void *record, size_t bytes, const struct record_id *lost_id)
{
	uint64_t lost[RING_LOST_BYTES_MAX / sizeof(uint64_t)];
	size_t lost_bytes = lost_record(ring, lost_id, (uint8_t *)lost, sizeof(lost));
	uint64_t unread = ring_unread(ring);

	if (lost_bytes + bytes > ring->data_bytes - unread) {
		ring->lost++;
		atomic_store_explicit(&ring->dropped, atomic_load_explicit(&ring->dropped, memory_order_relaxed) + 1,
		                      memory_order_relaxed);
		return false;
	}
	uint64_t head = ring_put(ring, ring->head, lost, lost_bytes);

	head = ring_put(ring, head, record, bytes);
	ring->lost = 0;
	ring_publish(ring, head, unread + lost_bytes + bytes, 1);
	return true;
}

bool ring_write_lost(struct ring *ring, const struct record_id *lost_id)
{
	uint64_t lost[RING_LOST_BYTES_MAX / sizeof(uint64_t)];
	size_t lost_bytes = lost_record(ring, lost_id, (uint8_t *)lost, sizeof(lost));
	uint64_t unread = ring_unread(ring);

	if (lost_bytes == 0)
		return true;
	if (lost_bytes > ring->data_bytes - unread)
		return false;
	ring->lost = 0;
	ring_publish(ring, ring_put(ring, ring->head, lost, lost_bytes), unread + lost_bytes, 0);
	return true;
}

struct ring_totals ring_totals(const struct ring *ring)
{
	return (struct ring_totals){
		.records = atomic_load_explicit(&ring->records, memory_order_relaxed),
		.dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed),
	};
}
