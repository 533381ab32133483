// SPDX-License-Identifier: BSD-2-Clause
/* The producer of a ring against the real reader, and against readers that lie. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vprof/ring.h>

#include "lib/record/ring_reader.h"
#include "run_suite.h"
#include "stream/ring.h"

#define SMALL VPROF_RING_DATA_BYTES_MIN
#define LOST_BYTES (56u + 48u)

/* A record of a type of the test's, `bytes` long, that says its number in every word. */
struct numbered {
	struct perf_event_header header;
	uint64_t words[63];
};

static struct numbered numbered(uint64_t number, size_t bytes)
{
	struct numbered record = {.header = {.type = 77, .size = (uint16_t)bytes}};

	for (size_t i = 0; i < G_N_ELEMENTS(record.words); i++)
		record.words[i] = number;
	return record;
}

static const struct record_id lost_id = {.time_ns = 123456, .cpu = 3, .id = 42};

static bool put(struct ring *ring, uint64_t number, size_t bytes)
{
	struct numbered record = numbered(number, bytes);

	return ring_write(ring, &record, bytes, &lost_id);
}

static bool put_sample(struct ring *ring, uint64_t number, size_t bytes)
{
	struct numbered record = numbered(number, bytes);

	record.header.type = PERF_RECORD_SAMPLE;
	return ring_write(ring, &record, bytes, &lost_id);
}

static struct ring *ring_make(size_t data_bytes)
{
	GError *error = NULL;
	struct ring *ring = ring_new(data_bytes, &error);

	ck_assert_msg(ring != NULL, "%s", error ? error->message : "");
	return ring;
}

static struct ring_reader *reader_make(const struct ring *ring)
{
	struct ring_reader *reader = ring_reader_open(ring_memfd(ring), NULL);

	ck_assert_ptr_nonnull(reader);
	return reader;
}

/* As a client sees it, to lie in it. */
static struct perf_event_mmap_page *page_of(const struct ring *ring)
{
	void *at = mmap(NULL, VPROF_RING_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring_memfd(ring), 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

static void assert_next(struct ring_reader *reader, uint64_t number, size_t bytes)
{
	size_t got;
	const struct perf_event_header *record = ring_reader_next(reader, &got);

	ck_assert_ptr_nonnull(record);
	ck_assert_uint_eq(record->type, 77);
	ck_assert_uint_eq(got, bytes);
	for (size_t i = 0; i < (bytes - sizeof(*record)) / 8; i++)
		ck_assert_uint_eq(((const uint64_t *)(record + 1))[i], number);
}

static void assert_lost_record(struct ring_reader *reader, uint32_t type, const uint64_t *body, size_t n)
{
	/* sample_id: pid and tid, time, cpu, identifier. */
	const uint64_t id[] = {0, 123456, 3, 42};
	size_t bytes;
	const struct perf_event_header *record = ring_reader_next(reader, &bytes);
	const uint64_t *words = (const uint64_t *)(record + 1);

	ck_assert_ptr_nonnull(record);
	ck_assert_uint_eq(record->type, type);
	ck_assert_uint_eq(bytes, sizeof(*record) + n * sizeof(*body) + sizeof(id));
	ck_assert_mem_eq(words, body, n * sizeof(*body));
	ck_assert_mem_eq(words + n, id, sizeof(id));
}

static void assert_lost(struct ring_reader *reader, uint64_t number, uint64_t samples)
{
	assert_lost_record(reader, PERF_RECORD_LOST, (const uint64_t[]){42, number}, 2);
	assert_lost_record(reader, PERF_RECORD_LOST_SAMPLES, &samples, 1);
}

static void assert_empty(struct ring_reader *reader)
{
	size_t bytes;

	ck_assert_ptr_null(ring_reader_next(reader, &bytes));
	ck_assert(!ring_reader_corrupt(reader));
}

static bool signalled(const struct ring *ring)
{
	struct pollfd wait = {.fd = ring_eventfd(ring), .events = POLLIN};
	uint64_t times;

	if (poll(&wait, 1, 0) == 0)
		return false;
	ck_assert_int_eq(read(wait.fd, &times, sizeof(times)), sizeof(times));
	return true;
}

START_TEST(sizes_are_checked)
{
	static const size_t wrong[] = {0, 1, 4095, 2048, 12288, ((size_t)VPROF_RING_DATA_BYTES_MAX) * 2, SIZE_MAX};

	for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
		g_autoptr(GError) error = NULL;

		ck_assert_ptr_null(ring_new(wrong[i], &error));
		ck_assert(g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_INVAL));
		ck_assert_msg(strstr(error->message, "power of two from 4096 to 268435456"), "%s", error->message);
	}
	ring_free(NULL);
}
END_TEST

START_TEST(memory_is_sealed)
{
	struct ring *ring = ring_make(SMALL);
	int memfd = ring_memfd(ring);

	ck_assert_int_eq(fcntl(memfd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	ck_assert_int_ne(ftruncate(memfd, 0), 0);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(fcntl(memfd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(ring_eventfd(ring), F_GETFD), FD_CLOEXEC);
	ck_assert_uint_eq(ring_data_bytes(ring), SMALL);
	ring_free(ring);
}
END_TEST

START_TEST(records_come_back)
{
	struct ring *ring = ring_make(SMALL);
	struct ring_reader *reader = reader_make(ring);

	ck_assert(put(ring, 1, 16));
	ck_assert(put(ring, 2, 256));
	assert_next(reader, 1, 16);
	assert_next(reader, 2, 256);
	assert_empty(reader);
	ck_assert_uint_eq(ring_statistics(ring).records, 2);
	ck_assert_uint_eq(ring_statistics(ring).dropped, 0);
	ring_reader_free(reader);
	ring_free(ring);
}
END_TEST

START_TEST(records_wrap_at_every_offset)
{
	struct ring *ring = ring_make(SMALL);
	struct ring_reader *reader = reader_make(ring);

	/* 264 and 4096 have 8 in common: the end of the ring cuts a record at each of its words. */
	for (uint64_t i = 0; i < 2000; i++) {
		ck_assert(put(ring, i, 264));
		assert_next(reader, i, 264);
		assert_empty(reader);
		ring_reader_release(reader);
	}
	ring_reader_free(reader);
	ring_free(ring);
}
END_TEST

START_TEST(full_ring_drops_and_says_so)
{
	struct ring *ring = ring_make(SMALL);
	struct ring_reader *reader = reader_make(ring);

	for (uint64_t i = 0; i < 15; i++)
		ck_assert(put(ring, i, 256));
	ck_assert(put(ring, 15, 152)); /* to the last byte but those that are kept for what was lost */
	for (uint64_t i = 0; i < 3; i++)
		ck_assert(!put_sample(ring, 100, 16));
	for (uint64_t i = 0; i < 2; i++)
		ck_assert(!put(ring, 100, 16));
	assert_next(reader, 0, 256);
	assert_next(reader, 1, 256); /* gives the space of the one before back */
	ring_reader_release(reader);
	for (uint64_t i = 2; i < 15; i++)
		assert_next(reader, i, 256);
	/* 512 bytes are free. What was lost is said first, and has to fit as well. */
	ck_assert(!put(ring, 101, 512 - LOST_BYTES + 8));
	ck_assert_uint_eq(ring_statistics(ring).dropped, 6);
	ck_assert(put(ring, 16, 64));
	ck_assert(put(ring, 17, 64));
	assert_next(reader, 15, 152);
	assert_lost(reader, 6, 3);
	assert_next(reader, 16, 64);
	assert_next(reader, 17, 64);
	assert_empty(reader);
	ck_assert_uint_eq(ring_statistics(ring).records, 18);
	ring_reader_free(reader);
	ring_free(ring);
}
END_TEST

START_TEST(losses_at_the_end_are_said_too)
{
	struct ring *ring = ring_make(SMALL);
	struct ring_reader *reader = reader_make(ring);

	ck_assert(ring_write_lost(ring, &lost_id, true)); /* none, no record */
	assert_empty(reader);
	for (uint64_t i = 0; i < 15; i++)
		ck_assert(put(ring, i, 256));
	ck_assert(put(ring, 15, 152));
	ck_assert(!put(ring, 16, 16));
	ck_assert(!ring_write_lost(ring, &lost_id, false)); /* more may be lost, and be said then */
	ck_assert(!put_sample(ring, 17, 16));
	/* Before anything was read. */
	ck_assert(ring_write_lost(ring, &lost_id, true));
	ck_assert(ring_write_lost(ring, &lost_id, true)); /* said once */
	for (uint64_t i = 0; i < 15; i++)
		assert_next(reader, i, 256);
	assert_next(reader, 15, 152);
	assert_lost(reader, 2, 1);
	assert_empty(reader);
	ring_reader_release(reader);
	ck_assert(put(ring, 18, 256));
	assert_next(reader, 18, 256);
	assert_empty(reader);
	ring_reader_free(reader);
	ring_free(ring);
}
END_TEST

START_TEST(eventfd_tells_of_the_watermark)
{
	struct ring *ring = ring_make(SMALL);
	struct ring_reader *reader = reader_make(ring);

	ring_set_watermark(ring, 512);
	ck_assert(put(ring, 0, 256));
	ck_assert(!signalled(ring));
	ck_assert(put(ring, 1, 256));
	ck_assert(signalled(ring));
	/* A reader who does not come is told once for every 512 bytes, not for every record. */
	ck_assert(put(ring, 2, 256));
	ck_assert(!signalled(ring));
	ck_assert(put(ring, 3, 256));
	ck_assert(signalled(ring));
	/* One who keeps up is not told at all. */
	for (uint64_t i = 0; i < 4; i++)
		assert_next(reader, i, 256);
	ring_reader_release(reader);
	for (uint64_t i = 4; i < 40; i++) {
		ck_assert(put(ring, i, 256));
		assert_next(reader, i, 256);
		ring_reader_release(reader);
	}
	ck_assert(!signalled(ring));
	ring_wake(ring);
	ck_assert(signalled(ring));
	ring_reader_free(reader);
	ring_free(ring);
}
END_TEST

/* data_tail as a hostile reader sets it, with 256 bytes unread at `head`. */
static uint64_t hostile_tail(int i, uint64_t head)
{
	const uint64_t tails[] = {
		head + 1, head + 8, head + SMALL, head - SMALL - 1, head - SMALL - 8, UINT64_MAX, UINT64_C(1) << 63,
	};

	return tails[i];
}

START_TEST(lying_readers_get_nothing)
{
	struct ring *ring = ring_make(SMALL);
	struct perf_event_mmap_page *page = page_of(ring);
	uint64_t head = 0;

	/* Some bytes on, so that "too far behind" is no small number. */
	for (uint64_t i = 0; i < 100; i++) {
		ck_assert(put(ring, i, 256));
		page->data_tail = head += 256;
	}
	ck_assert_uint_eq(page->data_head, head);
	page->data_tail = hostile_tail(_i, head);
	ck_assert(!put(ring, 100, 16));
	ck_assert_uint_eq(page->data_head, head);
	/* What he writes over the rest of the header is nothing to the producer. */
	page->data_head = 0x1234567;
	page->data_size = 1;
	page->data_offset = UINT64_MAX;
	ck_assert(!put(ring, 101, 16));
	page->data_tail = head;
	ck_assert(put(ring, 102, 16));
	ck_assert_uint_eq(page->data_head, head + LOST_BYTES + 16);
	ck_assert_uint_eq(ring_statistics(ring).dropped, 2);
	munmap(page, VPROF_RING_HEADER_BYTES);
	ring_free(ring);
}
END_TEST

/* The records from `offset` on, as one who reads beside the ring's reader gets them; the first has this number. */
static size_t view(const struct ring *ring, uint64_t *offset, uint64_t number)
{
	static uint64_t bytes[SMALL / sizeof(uint64_t)];
	size_t n = ring_view_read(ring, offset, bytes, sizeof(bytes));

	if (n != 0)
		ck_assert_uint_eq(bytes[1], number);
	return n;
}

START_TEST(views_do_not_disturb_the_reader)
{
	struct ring *ring = ring_make(SMALL);
	struct ring_reader *reader = reader_make(ring);
	uint64_t offset = 0;

	ck_assert_uint_eq(view(ring, &offset, 0), 0);
	for (uint64_t i = 0; i < 4; i++)
		ck_assert(put(ring, i, 256));
	ck_assert_uint_eq(ring_view_unread(ring), 4);
	ck_assert_uint_eq(view(ring, &offset, 0), 1024);
	offset = 512;
	ck_assert_uint_eq(view(ring, &offset, 2), 512);
	for (uint64_t i = 0; i < 4; i++)
		assert_next(reader, i, 256);
	ring_reader_release(reader);
	ck_assert_uint_eq(ring_view_unread(ring), 0);
	/* Given back, and not overwritten yet. */
	offset = 0;
	ck_assert_uint_eq(view(ring, &offset, 0), 1024);
	ring_reader_free(reader);
	ring_free(ring);
}
END_TEST

START_TEST(views_leave_out_what_is_overwritten)
{
	struct ring *ring = ring_make(SMALL);
	uint64_t offset = 0, records = SMALL / 256 - 1;

	for (uint64_t i = 0; i < records; i++)
		ck_assert(put(ring, i, 256));
	ck_assert(!put(ring, 99, 256));
	ck_assert(ring_view_give_back(
		ring, 512)); /* in the reader's place: two records, and one is written and a lost one before it */
	ck_assert(put(ring, records, 256));
	ck_assert_uint_eq(ring_view_unread(ring), records - 2 + 1);
	offset = 0;
	ck_assert_uint_eq(view(ring, &offset, 2), records * 256 - 512 + 256 + LOST_BYTES);
	ck_assert_uint_eq(offset, 512);
	/* In the middle of a record there is none, and none beyond the end. */
	offset = 520;
	ck_assert_uint_eq(view(ring, &offset, 0), 0);
	offset = ring_head(ring);
	ck_assert_uint_eq(view(ring, &offset, 0), 0);
	ring_free(ring);
}
END_TEST

START_TEST(views_survive_lying_readers)
{
	struct ring *ring = ring_make(SMALL);
	struct perf_event_mmap_page *page = page_of(ring);

	for (uint64_t i = 0; i < 3; i++)
		ck_assert(put(ring, i, 256));
	page->data_tail = hostile_tail(_i, 768);
	uint64_t offset = 8;

	ring_view_unread(ring);
	view(ring, &offset, 0);
	ck_assert_uint_le(ring_unread(ring), SMALL);
	munmap(page, VPROF_RING_HEADER_BYTES);
	ring_free(ring);
}
END_TEST

/*
 * ThreadSanitizer takes the two mappings of a ring for different memory, so here it watches only what the producer
 * shares with ring_statistics. That the bytes come before the head is shown by the contents.
 */
#define MANY UINT64_C(2000000)

struct producer {
	struct ring *ring;
	atomic_bool done;
};

static void *produce(void *data)
{
	struct producer *producer = data;

	for (uint64_t i = 0; i < MANY; i++)
		put(producer->ring, i, 16 + i % 7 * 8);
	ck_assert(ring_write_lost(producer->ring, &lost_id, true));
	atomic_store(&producer->done, true);
	return NULL;
}

/* The next number expected after this record. */
static uint64_t follow(const struct perf_event_header *record, size_t bytes, uint64_t number)
{
	const uint64_t *words = (const uint64_t *)(record + 1);

	if (record->type == PERF_RECORD_LOST)
		return number + words[1];
	if (record->type == PERF_RECORD_LOST_SAMPLES)
		return number;
	ck_assert_uint_eq(bytes, 16 + number % 7 * 8);
	for (size_t i = 0; i < (bytes - sizeof(*record)) / 8; i++)
		ck_assert_uint_eq(words[i], number);
	return number + 1;
}

/* Every number comes, in order, or is within the count of a PERF_RECORD_LOST at its place. */
START_TEST(two_threads_agree_on_millions)
{
	struct producer producer = {.ring = ring_make(1u << 16)};
	struct ring_reader *reader = reader_make(producer.ring);
	uint64_t number = 0;
	pthread_t thread;
	bool done = false;

	ck_assert_int_eq(pthread_create(&thread, NULL, produce, &producer), 0);
	while (!done) {
		const struct perf_event_header *record;
		size_t bytes;

		done = atomic_load(&producer.done);
		while ((record = ring_reader_next(reader, &bytes)))
			number = follow(record, bytes, number);
		ck_assert(!ring_reader_corrupt(reader));
		ring_reader_release(reader);
		struct ring_statistics statistics = ring_statistics(producer.ring);
		ck_assert_uint_le(statistics.records, MANY);
	}
	pthread_join(thread, NULL);
	ck_assert_uint_eq(number, MANY);
	struct ring_statistics statistics = ring_statistics(producer.ring);
	ck_assert_uint_eq(statistics.records + statistics.dropped, MANY);
	ck_assert_uint_gt(statistics.records, MANY / 1000);
	ring_reader_free(reader);
	ring_free(producer.ring);
}
END_TEST

/* Whatever a view gets while the producer goes on is whole, and in order. */
START_TEST(views_beside_a_producer_are_whole)
{
	static uint64_t bytes[SMALL / sizeof(uint64_t)];
	struct producer producer = {.ring = ring_make(SMALL)};
	uint64_t offset = 0, seen = 0, next = 0;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, produce, &producer), 0);
	while (!atomic_load(&producer.done)) {
		size_t n = ring_view_read(producer.ring, &offset, bytes, sizeof(bytes)), at = 0;

		for (const struct perf_event_header *record;
		     (record = record_check((const uint8_t *)bytes + at, n - at)); at += record->size) {
			const uint64_t *words = (const uint64_t *)(record + 1);

			if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES)
				continue;
			ck_assert_uint_ge(words[0], next);
			ck_assert_uint_eq(record->size, 16 + words[0] % 7 * 8);
			for (size_t i = 0; i < (record->size - sizeof(*record)) / 8; i++)
				ck_assert_uint_eq(words[i], words[0]);
			next = words[0] + 1;
			seen++;
		}
		ck_assert_uint_eq(at, n);
		offset += n;
		/* Mostly behind by more than the ring has, so that copies are overtaken. */
		ring_view_give_back(producer.ring, ring_head(producer.ring));
	}
	pthread_join(thread, NULL);
	ck_assert_uint_gt(seen, 0);
	ring_free(producer.ring);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("ring");
	TCase *tc = tcase_create("ring");

	tcase_set_timeout(tc, 50);
	tcase_add_test(tc, sizes_are_checked);
	tcase_add_test(tc, memory_is_sealed);
	tcase_add_test(tc, records_come_back);
	tcase_add_test(tc, records_wrap_at_every_offset);
	tcase_add_test(tc, full_ring_drops_and_says_so);
	tcase_add_test(tc, losses_at_the_end_are_said_too);
	tcase_add_test(tc, eventfd_tells_of_the_watermark);
	tcase_add_loop_test(tc, lying_readers_get_nothing, 0, 7);
	tcase_add_test(tc, views_do_not_disturb_the_reader);
	tcase_add_test(tc, views_leave_out_what_is_overwritten);
	tcase_add_loop_test(tc, views_survive_lying_readers, 0, 7);
	tcase_add_test(tc, two_threads_agree_on_millions);
	tcase_add_test(tc, views_beside_a_producer_are_whole);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
