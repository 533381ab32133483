// SPDX-License-Identifier: BSD-2-Clause
/* Recordings written, read back and cut off, and writing that fails. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "recording_file.h"
#include "run_suite.h"

/* Two names, mapping, 10 samples, 2 rounds, loss, the last round. */
#define N_RECORDS (2 + 1 + 10 + 2 + 1 + 1)

START_TEST(recording_comes_back)
{
	recording_write();
	struct recording *recording = open_good();

	ck_assert(!recording_cut_off(recording));
	ck_assert_ptr_null(recording_warning(recording));
	ck_assert_uint_eq(recording_n_events(recording), 2);
	const struct recording_event *event = recording_event(recording, 1);
	ck_assert_str_eq(event->name, "timer:u");
	ck_assert_uint_eq(event->n_ids, 2);
	ck_assert_uint_eq(event->ids[0], 22);
	ck_assert_uint_eq(event->ids[1], 21);
	ck_assert_uint_eq(event->attr.size, VPROF_ATTR_BYTES);
	ck_assert_uint_eq(event->attr.sample_type, VPROF_SAMPLE_TYPE);
	ck_assert_str_eq(recording_event(recording, 0)->name, "task-clock");
	ck_assert_str_eq(recording_hostname(recording), "guest");
	ck_assert_str_eq(recording_release(recording), "6.1.0-test");
	ck_assert_int_eq(recording_arch(recording), ARCH_ARM64);
	ck_assert_str_eq(recording_description(recording), "{\"version\": 1}");
	ck_assert_str_eq(recording_kernel_build_id(recording), BUILD_ID_TEXT);
	ck_assert(g_strv_equal(recording_cmdline(recording), cmdline));

	const struct tally tally = tally_of(recording);
	ck_assert_uint_eq(tally.records, N_RECORDS);
	ck_assert_uint_eq(tally.samples, 10);
	ck_assert_uint_eq(tally.of_event[0], 5);
	ck_assert_uint_eq(tally.of_event[1], 5);
	recording_free(recording);
}
END_TEST

START_TEST(event_of_a_sample)
{
	recording_write();
	struct recording *recording = open_good();

	ck_assert_int_eq(recording_event_of(recording, &(struct record_sample){.id = 11}), 0);
	ck_assert_int_eq(recording_event_of(recording, &(struct record_sample){.id = 12}), 0);
	ck_assert_int_eq(recording_event_of(recording, &(struct record_sample){.id = 21}), 1);
	ck_assert_int_eq(recording_event_of(recording, &(struct record_sample){.id = 22}), 1);
	ck_assert_int_eq(recording_event_of(recording, &(struct record_sample){.id = 0}), -1);
	ck_assert_int_eq(recording_event_of(recording, &(struct record_sample){.id = 23}), -1);
	recording_free(recording);
}
END_TEST

START_TEST(symbols_are_found)
{
	recording_write();
	struct recording *recording = open_good();

	ck_assert_uint_eq(recording_n_symbols(recording), 3);
	ck_assert_ptr_null(recording_symbol_find(recording, 0));
	ck_assert_ptr_null(recording_symbol_find(recording, TEXT + 0x0f));
	ck_assert_str_eq(recording_symbol_find(recording, TEXT + 0x10)->name, "first");
	ck_assert_str_eq(recording_symbol_find(recording, TEXT + 0x1f)->name, "first");
	ck_assert_str_eq(recording_symbol_find(recording, TEXT + 0x20)->name, "second");
	ck_assert_str_eq(recording_symbol_find(recording, TEXT + 0x3f)->module, "");
	ck_assert_ptr_null(recording_symbol_find(recording, TEXT + 0x40));
	ck_assert_str_eq(recording_symbol_find(recording, TEXT + 0x100)->module, "ext4");
	ck_assert_ptr_null(recording_symbol_find(recording, UINT64_MAX));
	recording_free(recording);
}
END_TEST

START_TEST(walk_stops_when_told)
{
	recording_write();
	struct recording *recording = open_good();
	struct tally tally = {.recording = recording, .stop_after = 4};

	ck_assert(recording_each(recording, tally_record, &tally, NULL));
	ck_assert_uint_eq(tally.records, 4);
	recording_free(recording);
}
END_TEST

START_TEST(absent_features_are_absent)
{
	GError *error = NULL;
	struct recording_writer *writer = writer_open(file_path, &error);

	ck_assert(recording_writer_finish(writer, &(struct recording_features){.vcpus = 1}, &error));
	recording_writer_free(writer);
	struct recording *recording = open_good();
	ck_assert(!recording_cut_off(recording));
	ck_assert_ptr_null(recording_hostname(recording));
	ck_assert_ptr_null(recording_release(recording));
	ck_assert_ptr_null(recording_cmdline(recording));
	ck_assert_ptr_null(recording_description(recording));
	ck_assert_ptr_null(recording_kernel_build_id(recording));
	ck_assert_uint_eq(recording_n_symbols(recording), 0);
	ck_assert_ptr_null(recording_symbol_find(recording, TEXT));
	ck_assert_uint_eq(tally_of(recording).samples, 0);
	recording_free(recording);
}
END_TEST

START_TEST(unfinished_recording_is_readable)
{
	struct recording_writer *writer = writer_open(file_path, NULL);

	write_records(writer);
	recording_writer_free(writer);
	struct recording *recording = open_good();
	ck_assert(recording_cut_off(recording));
	ck_assert_ptr_nonnull(recording_warning(recording));
	ck_assert_str_eq(recording_event(recording, 0)->name, "task-clock");
	ck_assert_str_eq(recording_event(recording, 1)->name, "timer:u");
	ck_assert_str_eq(recording_kernel_build_id(recording), BUILD_ID_TEXT);
	ck_assert_uint_eq(tally_of(recording).samples, 10);
	recording_free(recording);
}
END_TEST

START_TEST(cut_at_every_byte)
{
	recording_write();
	g_autoptr(GByteArray) whole = file_bytes();
	const size_t data_at = get_u64(whole, AT_DATA), data_end = data_at + get_u64(whole, AT_DATA + 8);
	size_t n_whole, whole_end;

	for (size_t n = whole->len; n-- > 0;) {
		g_autoptr(GError) error = NULL;

		ck_assert_int_eq(ftruncate(file_fd, (off_t)n), 0);
		struct recording *recording = recording_open(file_path, &error);
		if (n < data_at) {
			ck_assert_ptr_null(recording);
			ck_assert(error->code == (n < 8 ? RECORDING_ERROR_FORMAT : RECORDING_ERROR_TRUNCATED));
			continue;
		}
		ck_assert_ptr_nonnull(recording);
		ck_assert(recording_cut_off(recording));
		ck_assert_ptr_nonnull(recording_warning(recording));
		/* Exactly the records that end at or before n. */
		n_whole = 0;
		for (whole_end = data_at; whole_end < MIN(n, data_end);) {
			const struct perf_event_header *record =
				record_check(whole->data + whole_end, MIN(n, data_end) - whole_end);

			if (!record)
				break;
			n_whole++;
			whole_end += record->size;
		}
		const struct tally tally = tally_of(recording);
		ck_assert_uint_eq(tally.records, n_whole);
		ck_assert_uint_eq(tally.bytes, whole_end - data_at);
		recording_free(recording);
	}
}
END_TEST

/* Writing that fails. */

START_TEST(full_disk_is_said)
{
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(writer_open("/dev/full", &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
	ck_assert_ptr_nonnull(strstr(error->message, "/dev/full"));
	ck_assert_ptr_nonnull(strstr(error->message, g_strerror(ENOSPC)));
}
END_TEST

/* No file may grow beyond `bytes`; RLIM_INFINITY before check(3) writes its result. */
static void limit_files(rlim_t bytes)
{
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
}

START_TEST(write_that_breaks_off_leaves_whole_records)
{
	uint64_t buffer[64];
	g_autoptr(GError) error = NULL;
	struct recording_writer *writer = writer_open(file_path, NULL);
	const struct record_sample sample = {.id = 11, .ip = TEXT};
	const size_t bytes = record_sample_encode(&sample, false, buffer, sizeof(buffer));

	g_autoptr(GByteArray) start = file_bytes();
	for (int i = 0; i < 20; i++)
		write_record(writer, buffer, bytes);
	limit_files(start->len + 10 * bytes + 17);
	bool written = recording_writer_round(writer, &error);
	limit_files(RLIM_INFINITY);
	ck_assert(!written);
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
	ck_assert_ptr_nonnull(strstr(error->message, g_strerror(EFBIG)));
	g_clear_error(&error);
	ck_assert(!recording_writer_finish(writer, &features, &error));
	ck_assert_ptr_nonnull(strstr(error->message, g_strerror(EFBIG)));
	recording_writer_free(writer);

	g_autoptr(GByteArray) left = file_bytes();
	ck_assert_uint_eq(left->len, start->len + 10 * bytes);
	struct recording *recording = open_good();
	ck_assert(recording_cut_off(recording));
	recording_free(recording);
}
END_TEST

START_TEST(finish_that_breaks_off_keeps_the_records)
{
	g_autoptr(GError) error = NULL;
	struct recording_writer *writer = writer_open(file_path, NULL);

	write_records(writer);
	ck_assert(recording_writer_round(writer, NULL));
	g_autoptr(GByteArray) start = file_bytes();
	limit_files(start->len + 100);
	bool finished = recording_writer_finish(writer, &features, &error);
	limit_files(RLIM_INFINITY);
	ck_assert(!finished);
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
	recording_writer_free(writer);
	struct recording *recording = open_good();
	ck_assert(recording_cut_off(recording));
	ck_assert_uint_eq(tally_of(recording).samples, 10);
	recording_free(recording);
}
END_TEST

START_TEST(malformed_record_is_not_written)
{
	static const uint16_t sizes[] = {0, 7, 12};
	g_autoptr(GError) error = NULL;
	struct recording_writer *writer = writer_open(file_path, NULL);
	const struct perf_event_header record = {.type = PERF_RECORD_SAMPLE, .size = sizes[_i]};

	ck_assert(!recording_writer_record(writer, &record, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT));
	write_records(writer);
	ck_assert(recording_writer_finish(writer, &features, NULL));
	recording_writer_free(writer);
	struct recording *recording = open_good();
	ck_assert_uint_eq(tally_of(recording).records, N_RECORDS);
	recording_free(recording);
}
END_TEST

START_TEST(pipe_is_refused_for_writing)
{
	int ends[2];
	g_autoptr(GError) error = NULL;

	ck_assert_int_eq(pipe(ends), 0);
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", ends[1]);
	ck_assert_ptr_null(writer_open(path, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
	ck_assert_ptr_null(writer_open("/nonexistent/vprof.data", NULL));
}
END_TEST

START_TEST(old_contents_are_replaced)
{
	g_autoptr(GByteArray) rubbish = g_byte_array_new();

	g_byte_array_set_size(rubbish, 100000);
	memset(rubbish->data, 'x', rubbish->len);
	file_set(rubbish->data, rubbish->len);
	recording_write();
	g_autoptr(GByteArray) written = file_bytes();
	ck_assert_uint_lt(written->len, 10000);
	struct recording *recording = open_good();
	ck_assert_uint_eq(tally_of(recording).samples, 10);
	recording_free(recording);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recording");
	TCase *tests = tcase_create("recording");

	tcase_add_checked_fixture(tests, file_make, file_drop);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, recording_comes_back);
	tcase_add_test(tests, event_of_a_sample);
	tcase_add_test(tests, symbols_are_found);
	tcase_add_test(tests, walk_stops_when_told);
	tcase_add_test(tests, absent_features_are_absent);
	tcase_add_test(tests, unfinished_recording_is_readable);
	tcase_add_test(tests, cut_at_every_byte);
	tcase_add_test(tests, full_disk_is_said);
	tcase_add_test(tests, write_that_breaks_off_leaves_whole_records);
	tcase_add_test(tests, finish_that_breaks_off_keeps_the_records);
	tcase_add_loop_test(tests, malformed_record_is_not_written, 0, 3);
	tcase_add_test(tests, pipe_is_refused_for_writing);
	tcase_add_test(tests, old_contents_are_replaced);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
