// SPDX-License-Identifier: BSD-2-Clause
/* A ring of which the test writes every byte, as a faulty or hostile producer could. */
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vprof/ring.h>

#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "lib/record/writer.h"
#include "run_suite.h"

#define DATA_BYTES VPROF_RING_DATA_BYTES_MIN

static int ring_fd;
static struct perf_event_mmap_page *page;
static uint8_t *data;

static void ring_make(void)
{
	ring_fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_eq(ftruncate(ring_fd, VPROF_RING_HEADER_BYTES + DATA_BYTES), 0);
	page = mmap(NULL, VPROF_RING_HEADER_BYTES + DATA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	data = (uint8_t *)page + VPROF_RING_HEADER_BYTES;
	page->data_offset = VPROF_RING_HEADER_BYTES;
	page->data_size = DATA_BYTES;
}

static void ring_drop(void)
{
	munmap(page, VPROF_RING_HEADER_BYTES + DATA_BYTES);
	close(ring_fd);
}

/* Writes `bytes` at the ring's head, around its end if need be, without moving the head. */
static void put_at_head(const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		data[(page->data_head + i) % DATA_BYTES] = ((const uint8_t *)from)[i];
}

/* A record of `bytes` with `value` as the first word of its payload. */
static void put_record(size_t bytes, uint64_t value)
{
	uint64_t words[DATA_BYTES / 8] = {0, value};

	memcpy(words, &(struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = (uint16_t)bytes}, 8);
	put_at_head(words, bytes);
	page->data_head += bytes;
}

static struct ring_reader *reader_open(void)
{
	GError *error = NULL;
	struct ring_reader *reader = ring_reader_open(ring_fd, &error);

	ck_assert_msg(reader != NULL, "%s", error ? error->message : "?");
	return reader;
}

static uint64_t payload(const struct perf_event_header *record)
{
	uint64_t value;

	memcpy(&value, record + 1, sizeof(value));
	return value;
}

START_TEST(records_come_in_order_and_wrap)
{
	struct ring_reader *reader = reader_open();
	uint64_t next = 0;
	size_t bytes;

	/* 24 does not divide the data's size: sooner or later a record lies across its end at each offset. */
	for (uint64_t i = 0; i < 2000; i++) {
		put_record(24, i);
		if (i % 3 != 2)
			continue;
		for (; next <= i; next++) {
			const struct perf_event_header *record = ring_reader_next(reader, &bytes);

			ck_assert_ptr_nonnull(record);
			ck_assert_uint_eq(bytes, 24);
			ck_assert_uint_eq(payload(record), next);
		}
		ck_assert_ptr_null(ring_reader_next(reader, &bytes));
		ring_reader_release(reader);
		ck_assert_uint_eq(page->data_tail, page->data_head);
	}
	ck_assert(!ring_reader_corrupt(reader));
	ring_reader_free(reader);
}
END_TEST

START_TEST(full_ring_is_read_whole)
{
	struct ring_reader *reader = reader_open();
	size_t bytes;

	put_record(DATA_BYTES, 77);
	const struct perf_event_header *record = ring_reader_next(reader, &bytes);
	ck_assert_ptr_nonnull(record);
	ck_assert_uint_eq(bytes, DATA_BYTES);
	ck_assert_uint_eq(payload(record), 77);
	ring_reader_free(reader);
}
END_TEST

START_TEST(counters_may_pass_their_end)
{
	page->data_head = page->data_tail = UINT64_MAX - 7;
	struct ring_reader *reader = reader_open();
	size_t bytes;

	put_record(24, 5);
	ck_assert_uint_eq(page->data_head, 16);
	const struct perf_event_header *record = ring_reader_next(reader, &bytes);
	ck_assert_ptr_nonnull(record);
	ck_assert_uint_eq(payload(record), 5);
	ck_assert_ptr_null(ring_reader_next(reader, &bytes));
	ck_assert(!ring_reader_corrupt(reader));
	ring_reader_free(reader);
}
END_TEST

START_TEST(copy_does_not_change_with_the_ring)
{
	struct ring_reader *reader = reader_open();
	size_t bytes;

	put_record(24, 5);
	const struct perf_event_header *record = ring_reader_next(reader, &bytes);
	memset(data, 0xff, DATA_BYTES);
	ck_assert_uint_eq(record->size, 24);
	ck_assert_uint_eq(payload(record), 5);
	ring_reader_free(reader);
}
END_TEST

START_TEST(sizes_are_read_once)
{
	struct ring_reader *reader = reader_open();
	size_t bytes;

	put_record(24, 5);
	page->data_size = UINT64_C(1) << 40;
	page->data_offset = UINT64_C(1) << 40;
	ck_assert_uint_eq(payload(ring_reader_next(reader, &bytes)), 5);
	ring_reader_free(reader);
}
END_TEST

START_TEST(ring_cannot_shrink_under_its_reader)
{
	struct ring_reader *reader = reader_open();

	ck_assert_int_ne(ftruncate(ring_fd, 0), 0);
	ring_reader_free(reader);
}
END_TEST

static void assert_corrupt(struct ring_reader *reader)
{
	size_t bytes;

	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_null(ring_reader_next(reader, &bytes));
		ck_assert(ring_reader_corrupt(reader));
	}
	ring_reader_free(reader);
}

START_TEST(heads_that_cannot_be)
{
	static const uint64_t heads[] = {DATA_BYTES + 8, UINT64_MAX - 7, UINT64_C(1) << 63, 4, 12};

	page->data_head = heads[_i];
	assert_corrupt(reader_open());
}
END_TEST

START_TEST(head_that_goes_back)
{
	size_t bytes;

	put_record(24, 1);
	put_record(24, 2);
	struct ring_reader *reader = reader_open();
	ck_assert_ptr_nonnull(ring_reader_next(reader, &bytes));
	ck_assert_ptr_nonnull(ring_reader_next(reader, &bytes));
	page->data_head = 24;
	assert_corrupt(reader);
}
END_TEST

START_TEST(record_sizes_that_cannot_be)
{
	static const uint16_t sizes[] = {0, 4, 7, 9, 20, 48, 4096, UINT16_MAX};

	put_record(40, 1);
	memcpy(data, &(struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = sizes[_i]}, 8);
	assert_corrupt(reader_open());
}
END_TEST

START_TEST(headers_that_cannot_be)
{
	static const struct {
		uint64_t offset, size;
	} headers[] = {
		{VPROF_RING_HEADER_BYTES, 0},
		{VPROF_RING_HEADER_BYTES, DATA_BYTES - 8},
		{VPROF_RING_HEADER_BYTES, DATA_BYTES / 2},
		{VPROF_RING_HEADER_BYTES, UINT64_C(2) * DATA_BYTES},
		{VPROF_RING_HEADER_BYTES, UINT64_C(1) << 63},
		{0, DATA_BYTES},
		{UINT64_MAX - 7, DATA_BYTES},
		{VPROF_RING_HEADER_BYTES + 8, DATA_BYTES},
	};
	g_autoptr(GError) error = NULL;

	page->data_offset = headers[_i].offset;
	page->data_size = headers[_i].size;
	ck_assert_ptr_null(ring_reader_open(ring_fd, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT));
}
END_TEST

START_TEST(a_ring_that_could_shrink)
{
	g_autoptr(GError) error = NULL;
	int open = memfd_create("ring", MFD_CLOEXEC); /* which seals its seals */

	ck_assert_int_eq(ftruncate(open, (off_t)(VPROF_RING_HEADER_BYTES + DATA_BYTES)), 0);
	ck_assert_ptr_null(ring_reader_open(open, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT));
	ck_assert(strstr(error->message, "could make it shorter"));
	close(open);
}
END_TEST

START_TEST(files_that_are_no_rings)
{
	g_autoptr(GError) error = NULL;
	int small = memfd_create("small", MFD_CLOEXEC);

	ck_assert_ptr_null(ring_reader_open(small, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT));
	g_clear_error(&error);
	close(small);
	ck_assert_ptr_null(ring_reader_open(small, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_reader");
	TCase *tests = tcase_create("ring_reader");

	tcase_add_checked_fixture(tests, ring_make, ring_drop);
	tcase_add_test(tests, records_come_in_order_and_wrap);
	tcase_add_test(tests, full_ring_is_read_whole);
	tcase_add_test(tests, counters_may_pass_their_end);
	tcase_add_test(tests, copy_does_not_change_with_the_ring);
	tcase_add_test(tests, sizes_are_read_once);
	tcase_add_test(tests, ring_cannot_shrink_under_its_reader);
	tcase_add_loop_test(tests, heads_that_cannot_be, 0, 5);
	tcase_add_test(tests, head_that_goes_back);
	tcase_add_loop_test(tests, record_sizes_that_cannot_be, 0, 8);
	tcase_add_loop_test(tests, headers_that_cannot_be, 0, 8);
	tcase_add_test(tests, a_ring_that_could_shrink);
	tcase_add_test(tests, files_that_are_no_rings);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
