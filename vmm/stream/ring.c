// SPDX-License-Identifier: BSD-2-Clause
#include "stream/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vprof/ring.h>

#include "stream/statistics.h"

#define VIEW_BYTES 65536u
#define OVERTAKEN_MAX 8u /* retries when the producer is faster than the copy */

/* [I] immutable after ring_new, [p] producer thread only, [a] atomic, [s] shared with the reader's process. */
struct ring {
	int memfd;                         /* [I] */
	int eventfd;                       /* [I] */
	size_t data_bytes;                 /* [I] */
	struct perf_event_mmap_page *page; /* [s] */
	uint8_t *data;                     /* [s] */
	_Atomic uint64_t head;             /* [a] page->data_head is a copy of it */
	_Atomic uint64_t writing;          /* [a] the producer may be writing up to here, past head */
	uint64_t woken;                    /* [p] head when the eventfd was last signalled */
	uint64_t lost, lost_samples;       /* [p] dropped since the last PERF_RECORD_LOST; the second among the first */
	_Atomic uint64_t watermark;        /* [a] */
	_Atomic uint64_t records, dropped; /* [a] written by the producer */
	_Atomic uint64_t handed_over;      /* [a] written by the producer */
	_Atomic uint64_t full_times;       /* [a] written by the producer */
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

	g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errnum), "cannot make a sample ring: %s: %s",
	            what, g_strerror(errnum));
	return false;
}

/* Seals: a process that gets the descriptor cannot shrink the memory under the producer. */
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
	/* Populated now: a page fault during a sample would be part of the guest's time. */
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
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
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

	/* EAGAIN: 2^64 - 2 wake-ups are unread; one more would not matter. */
	if (write(ring->eventfd, &one, sizeof(one)) < 0)
		return;
}

uint64_t ring_head(const struct ring *ring)
{
	/* Acquire: pairs with ring_publish, for ring_peek. */
	return atomic_load_explicit(&ring->head, memory_order_acquire);
}

/* The reader's tail is not trusted: ahead of head, or behind by more than a ring, counts as full. */
size_t ring_unread(const struct ring *ring)
{
	/*
	 * Acquire: pairs with the reader's release store of data_tail; the reader has copied what is overwritten now.
	 */
	uint64_t tail = atomic_load_explicit(shared_u64(&ring->page->data_tail), memory_order_acquire);
	uint64_t unread = ring_head(ring) - tail;

	return (size_t)MIN(unread, ring->data_bytes);
}

bool ring_is_scarce(const struct ring *ring)
{
	return ring->data_bytes - ring_unread(ring) < ring->data_bytes / 4;
}

bool ring_is_due(const struct ring *ring)
{
	return ring_unread(ring) >= atomic_load_explicit(&ring->watermark, memory_order_relaxed) ||
	       ring_is_scarce(ring);
}

bool ring_has_recovered(const struct ring *ring)
{
	return ring_unread(ring) <= ring->data_bytes / 2;
}

static _Atomic uint64_t *word_at(const struct ring *ring, uint64_t at)
{
	return (_Atomic uint64_t *)(void *)(ring->data + (at & (ring->data_bytes - 1)));
}

/* Before ring_put: a later ring_peek sees that what was there, a ring's size before, is gone. */
static void ring_claim(struct ring *ring, uint64_t end)
{
	atomic_store_explicit(&ring->writing, end, memory_order_relaxed);
}

/*
 * Appends; not visible to the reader yet. Returns the end. Release: a ring_peek that gets one of these words also sees
 * the claim that came before it.
 */
static uint64_t ring_put(struct ring *ring, uint64_t at, const void *record, size_t bytes)
{
	const uint64_t *words = record;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		atomic_store_explicit(word_at(ring, at + i * sizeof(*words)), words[i], memory_order_release);
	return at + bytes;
}

/*
 * Copies from `offset` on, *bytes at most and up to the head; *bytes becomes what was copied, a multiple of 8. False
 * when `offset` is not a multiple of 8, not written yet or overwritten.
 */
static bool ring_peek(const struct ring *ring, uint64_t offset, void *to, size_t *bytes)
{
	uint64_t there = ring_head(ring) - offset;
	uint64_t *words = to;

	if (there > ring->data_bytes || offset % sizeof(*words) != 0)
		return false;
	*bytes = MIN(*bytes, (size_t)there) & ~(sizeof(*words) - 1);
	for (size_t i = 0; i < *bytes / sizeof(*words); i++)
		words[i] = atomic_load_explicit(word_at(ring, offset + i * sizeof(*words)), memory_order_acquire);
	return atomic_load_explicit(&ring->writing, memory_order_relaxed) - offset <= ring->data_bytes;
}

/* Releases what is before `offset`, from head - ring_unread() to head. */
static void ring_release(struct ring *ring, uint64_t offset)
{
	atomic_store_explicit(shared_u64(&ring->page->data_tail), offset, memory_order_release);
}

bool ring_hand_over(struct ring *ring)
{
	uint64_t head = ring_head(ring);

	if (head == ring->woken)
		return false;
	ring->woken = head;
	statistic_add(&ring->handed_over, 1);
	ring_wake(ring);
	return true;
}

static void ring_publish(struct ring *ring, uint64_t head, uint64_t unread, uint64_t records)
{
	uint64_t watermark = atomic_load_explicit(&ring->watermark, memory_order_relaxed);

	/* Release: pairs with ring_head. */
	atomic_store_explicit(&ring->head, head, memory_order_release);
	/* Release: pairs with the reader's acquire load of data_head; the reader sees the bytes before it. */
	atomic_store_explicit(shared_u64(&ring->page->data_head), head, memory_order_release);
	statistic_add(&ring->records, records);
	if (unread >= watermark && head - ring->woken >= watermark)
		ring_hand_over(ring);
}

/* Encodes what was lost; returns 0 bytes if nothing was. */
static size_t lost_records(const struct ring *ring, const struct record_id *id,
                           uint64_t to[RING_LOST_BYTES_MAX / sizeof(uint64_t)])
{
	const struct record_lost lost = {id->id, ring->lost};

	if (ring->lost == 0)
		return 0;
	size_t bytes = record_lost_encode(&lost, id, to, RING_LOST_BYTES_MAX);

	return bytes + record_lost_samples_encode(ring->lost_samples, id, to + bytes / sizeof(*to),
	                                          RING_LOST_BYTES_MAX - bytes);
}

static void ring_drop(struct ring *ring, const struct perf_event_header *record)
{
	statistic_add(&ring->full_times, ring->lost++ == 0);
	ring->lost_samples += record->type == PERF_RECORD_SAMPLE;
	statistic_add(&ring->dropped, 1);
}

static bool fits(const struct ring *ring, size_t bytes, uint64_t unread)
{
	return bytes + RING_LOST_BYTES_MAX <= ring->data_bytes - unread;
}

bool ring_has_room(const struct ring *ring, size_t bytes)
{
	return fits(ring, bytes + (ring->lost != 0 ? RING_LOST_BYTES_MAX : 0), ring_unread(ring));
}

bool ring_write(struct ring *ring, const void *record, size_t bytes, const struct record_id *lost_id)
{
	uint64_t lost[RING_LOST_BYTES_MAX / sizeof(uint64_t)];
	size_t lost_bytes = lost_records(ring, lost_id, lost);
	uint64_t unread = ring_unread(ring);

	if (!fits(ring, lost_bytes + bytes, unread)) {
		ring_drop(ring, record);
		return false;
	}
	uint64_t head = ring_head(ring);

	ring_claim(ring, head + lost_bytes + bytes);
	head = ring_put(ring, head, lost, lost_bytes);
	head = ring_put(ring, head, record, bytes);
	ring->lost = ring->lost_samples = 0;
	ring_publish(ring, head, unread + lost_bytes + bytes, 1);
	return true;
}

bool ring_write_lost(struct ring *ring, const struct record_id *lost_id, bool last)
{
	const size_t kept = last ? 0 : RING_LOST_BYTES_MAX;
	uint64_t lost[RING_LOST_BYTES_MAX / sizeof(uint64_t)];
	size_t lost_bytes = lost_records(ring, lost_id, lost);
	uint64_t unread = ring_unread(ring);

	if (lost_bytes == 0)
		return true;
	if (lost_bytes + kept > ring->data_bytes - unread)
		return false;
	ring->lost = ring->lost_samples = 0;
	uint64_t head = ring_head(ring);

	ring_claim(ring, head + lost_bytes);
	ring_publish(ring, ring_put(ring, head, lost, lost_bytes), unread + lost_bytes, 0);
	return true;
}

struct ring_statistics ring_statistics(const struct ring *ring)
{
	return (struct ring_statistics){
		.records = atomic_load_explicit(&ring->records, memory_order_relaxed),
		.dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed),
		.handed_over = atomic_load_explicit(&ring->handed_over, memory_order_relaxed),
		.full_times = atomic_load_explicit(&ring->full_times, memory_order_relaxed),
	};
}

/* ---- its records, as a reader in this process has them ---- */

/* Bytes of the whole records at the start of what was copied. */
static size_t whole_records(const void *bytes, size_t n, uint64_t *records)
{
	size_t at = 0;

	for (const struct perf_event_header *record; (record = record_check((const uint8_t *)bytes + at, n - at));) {
		at += record->size;
		*records += record->type != PERF_RECORD_LOST && record->type != PERF_RECORD_LOST_SAMPLES;
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

/* Walks from the oldest record towards `end`; returns where it stopped. */
static uint64_t walk(const struct ring *ring, uint64_t end, uint64_t *records)
{
	g_autofree uint64_t *bytes = g_malloc(VIEW_BYTES);
	uint64_t offset = oldest(ring);

	while (end - offset - 1 < ring_data_bytes(ring)) { /* never past it, even if the reader goes on meanwhile */
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
