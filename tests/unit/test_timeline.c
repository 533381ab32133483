// SPDX-License-Identifier: BSD-2-Clause
/* Samples by time: nothing is lost when slices become longer, whatever the order of the samples. */
#include <check.h>
#include <glib.h>
#include <vprof/exit.h>

#include "lib/profile/timeline.h"
#include "run_suite.h"

static void add(struct timeline *timeline, uint64_t time_ns, uint32_t cpu, uint16_t misc, uint64_t period)
{
	timeline_add(timeline,
	             &(struct record_sample){.time_ns = time_ns, .cpu = cpu, .misc = misc, .period = period, .ip = 1});
}

START_TEST(a_short_recording_has_short_slices)
{
	struct timeline *timeline = timeline_new();
	size_t n;

	add(timeline, 5000, 1, PERF_RECORD_MISC_USER, 7);
	add(timeline, 1024, 0, PERF_RECORD_MISC_KERNEL, 3);
	add(timeline, 2047, 0, PERF_RECORD_MISC_KERNEL, 4);
	struct timeline_cell *cells = timeline_cells(timeline, &n);

	ck_assert_uint_eq(timeline_slice_ns(timeline), 1024);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(cells[0].slice, 1);
	ck_assert_uint_eq(cells[0].period, 7);
	ck_assert_int_eq(cells[0].mode, PROFILE_KERNEL);
	ck_assert_uint_eq(cells[1].slice, 4);
	ck_assert_uint_eq(cells[1].cpu, 1);
	g_free(cells);
	timeline_free(timeline);
}
END_TEST

START_TEST(a_long_recording_has_few_slices)
{
	struct timeline *timeline = timeline_new();
	uint64_t sum = 0;
	size_t n;

	/* An hour by milliseconds, from its middle both ways. */
	for (uint64_t i = 0; i < 3600000; i++)
		add(timeline, UINT64_C(1000000) * (i % 2 != 0 ? 5000000 + i : 5000000 - i), 0, PERF_RECORD_MISC_USER,
		    i);
	struct timeline_cell *cells = timeline_cells(timeline, &n);

	ck_assert_uint_le(n, TIMELINE_SLICES_MAX);
	ck_assert_uint_gt(n, TIMELINE_SLICES_MAX / 4);
	for (size_t i = 0; i < n; i++)
		sum += cells[i].period;
	ck_assert_uint_eq(sum, UINT64_C(3600000) * 3599999 / 2);
	g_free(cells);
	timeline_free(timeline);
}
END_TEST

START_TEST(the_ends_of_time_fit)
{
	struct timeline *timeline = timeline_new();
	size_t n;

	add(timeline, UINT64_MAX, 0, PERF_RECORD_MISC_USER, 1);
	add(timeline, 0, 0, PERF_RECORD_MISC_USER, 2);
	struct timeline_cell *cells = timeline_cells(timeline, &n);

	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(cells[0].period, 2);
	ck_assert_uint_lt(cells[1].slice, TIMELINE_SLICES_MAX);
	g_free(cells);
	timeline_free(timeline);
}
END_TEST

START_TEST(exits_are_told_apart_by_reason)
{
	struct timeline *timeline = timeline_new();
	struct record_sample sample = {.misc = PERF_RECORD_MISC_HYPERVISOR, .period = 1};
	size_t n;

	for (uint64_t detail = 0; detail < 10; detail++) {
		sample.ip = vprof_exit_ip(detail % 2 + 2, detail);
		timeline_add(timeline, &sample);
	}
	struct timeline_cell *cells = timeline_cells(timeline, &n);

	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(cells[0].exit_reason, 2);
	ck_assert_uint_eq(cells[1].exit_reason, 3);
	ck_assert_uint_eq(cells[1].period, 5);
	g_free(cells);
	timeline_free(timeline);
}
END_TEST

START_TEST(an_empty_timeline_has_no_cells)
{
	struct timeline *timeline = timeline_new();
	size_t n;

	g_free(timeline_cells(timeline, &n));
	ck_assert_uint_eq(n, 0);
	timeline_free(timeline);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("timeline");
	Suite *suite = suite_create("timeline");

	tcase_add_test(tests, a_short_recording_has_short_slices);
	tcase_add_test(tests, a_long_recording_has_few_slices);
	tcase_add_test(tests, the_ends_of_time_fit);
	tcase_add_test(tests, exits_are_told_apart_by_reason);
	tcase_add_test(tests, an_empty_timeline_has_no_cells);
	tcase_set_timeout(tests, 60);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
