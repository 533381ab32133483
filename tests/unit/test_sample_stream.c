// SPDX-License-Identifier: BSD-2-Clause
/* Rings that are made together, and samples on their way into one. */
#include <check.h>
#include <string.h>
#include <vprof/ring.h>

#include "run_suite.h"
#include "stream/sample_stream.h"

#define RINGS 2u
#define SMALL VPROF_RING_DATA_BYTES_MIN

static struct ring *rings[RINGS];

static void setup(void)
{
	ck_assert(sample_rings_make(rings, RINGS, SMALL, NULL));
}

static void teardown(void)
{
	sample_rings_free(rings, RINGS);
	for (unsigned i = 0; i < RINGS; i++)
		ck_assert_ptr_null(rings[i]);
}

START_TEST(new_rings_take_the_place_of_old_ones)
{
	ck_assert(sample_rings_make(rings, RINGS, 2 * SMALL, NULL));
	for (unsigned i = 0; i < RINGS; i++)
		ck_assert_uint_eq(ring_data_bytes(rings[i]), 2 * SMALL);
}
END_TEST

START_TEST(old_rings_stay_when_there_are_no_new_ones)
{
	struct ring *const old[RINGS] = {rings[0], rings[1]};
	g_autoptr(GError) error = NULL;

	ck_assert(!sample_rings_make(rings, RINGS, SMALL + 1, &error));
	ck_assert(g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_INVAL));
	for (unsigned i = 0; i < RINGS; i++)
		ck_assert_ptr_eq(rings[i], old[i]);
}
END_TEST

/* The longest chain that a sample may have, until there is no room for another. */
START_TEST(a_sample_is_written_or_dropped)
{
	static uint64_t chain[UNWIND_CHAIN_MAX + 128u];
	const struct sample_stream_config config = {.mappings = true, .groups = true, .modules = true};
	struct record_sample sample = {.id = 7, .ip = 0x1000, .pid = 3, .tid = 4, .time_ns = 5, .cpu = 1, .period = 6};
	static struct sample_stream stream; /* too large for a stack */
	unsigned written = 0;

	sample_stream_init(&stream, &config, rings[0]);
	ck_assert_ptr_null(stream.mapper); /* of a guest whose tasks are not told apart */
	sample.chain = chain;
	sample.n_chain = G_N_ELEMENTS(chain);
	while (sample_stream_write(&stream, &sample, true))
		written++;
	ck_assert_uint_gt(written, 0);
	ck_assert_uint_eq(ring_statistics(rings[0]).records, written);
	ck_assert_uint_eq(ring_statistics(rings[0]).dropped, 1);

	uint64_t bytes[SMALL / sizeof(uint64_t)], offset = 0;
	const size_t n = ring_view_read(rings[0], &offset, bytes, sizeof(bytes));
	const struct perf_event_header *record = record_check(bytes, n);
	struct record_sample read;

	ck_assert_ptr_nonnull(record);
	ck_assert(record_sample_decode(record, record->size, VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN, &read));
	ck_assert_uint_eq(read.id, 7);
	ck_assert_uint_eq(read.tid, 4);
	ck_assert_uint_eq(read.n_chain, G_N_ELEMENTS(chain));
	sample_stream_deinit(&stream);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sample_stream");
	TCase *tc = tcase_create("sample_stream");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, new_rings_take_the_place_of_old_ones);
	tcase_add_test(tc, old_rings_stay_when_there_are_no_new_ones);
	tcase_add_test(tc, a_sample_is_written_or_dropped);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
