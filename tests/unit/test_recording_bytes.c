// SPDX-License-Identifier: BSD-2-Clause
/* Files that are no recordings, damaged ones, and those that other versions of perf make. */
#include <check.h>
#include <string.h>
#include <unistd.h>

#include "recording_file.h"
#include "run_suite.h"

/* Files that are refused. */

static void assert_refused(enum recording_error code, const char *says)
{
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(recording_open(file_path, &error));
	ck_assert_int_eq(error->code, (int)code);
	ck_assert_msg(strstr(error->message, says) != NULL, "\"%s\" lacks \"%s\"", error->message, says);
	ck_assert_msg(strstr(error->message, file_path) != NULL, "\"%s\"", error->message);
}

START_TEST(foreign_files_are_refused)
{
	static const uint64_t pipe_header[2] = {UINT64_C(0x32454c4946524550), 16};

	file_set("", 0);
	assert_refused(RECORDING_ERROR_FORMAT, "is empty");
	file_set("PERF", 4);
	assert_refused(RECORDING_ERROR_FORMAT, "no perf.data file");
	file_set("\177ELF and some more of what it may have", 32);
	assert_refused(RECORDING_ERROR_FORMAT, "no perf.data file");
	file_set("2ELIFREP and some more", 20);
	assert_refused(RECORDING_ERROR_FORMAT, "big-endian");
	file_set("PERFFILE and some more", 20);
	assert_refused(RECORDING_ERROR_FORMAT, "first perf.data format");
	file_set(pipe_header, sizeof(pipe_header));
	assert_refused(RECORDING_ERROR_FORMAT, "into a pipe");
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	g_autoptr(GError) error = NULL;
	int ends[2];

	ck_assert_ptr_null(recording_open("/nonexistent", &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
	g_clear_error(&error);
	ck_assert_ptr_null(recording_open("/", &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
	g_clear_error(&error);
	ck_assert_int_eq(pipe(ends), 0);
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", ends[0]);
	ck_assert_ptr_null(recording_open(path, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_IO));
}
END_TEST

START_TEST(damaged_headers_are_refused)
{
	static const struct {
		size_t at;
		uint64_t value;
		enum recording_error code;
	} damages[] = {
		{AT_SIZE, 0, RECORDING_ERROR_FORMAT},
		{AT_SIZE, 96, RECORDING_ERROR_FORMAT},
		{AT_SIZE, UINT64_MAX, RECORDING_ERROR_FORMAT},
		{AT_ATTR_SIZE, 0, RECORDING_ERROR_FORMAT},
		{AT_ATTR_SIZE, 79, RECORDING_ERROR_FORMAT},
		{AT_ATTR_SIZE, 100, RECORDING_ERROR_FORMAT},
		{AT_ATTR_SIZE, UINT64_MAX, RECORDING_ERROR_FORMAT},
		{AT_ATTRS, UINT64_MAX - 100, RECORDING_ERROR_TRUNCATED},
		{AT_ATTRS, UINT64_C(1) << 32, RECORDING_ERROR_TRUNCATED},
		{AT_ATTRS + 8, 0, RECORDING_ERROR_FORMAT},
		{AT_ATTRS + 8, 145, RECORDING_ERROR_FORMAT},
		{AT_ATTRS + 8, UINT64_C(144) << 32, RECORDING_ERROR_TRUNCATED},
		{AT_DATA, UINT64_MAX, RECORDING_ERROR_TRUNCATED},
		{HEADER_BYTES + AT_SAMPLE_TYPE, PERF_SAMPLE_IP, RECORDING_ERROR_FORMAT},
		{HEADER_BYTES + AT_SAMPLE_TYPE, PERF_SAMPLE_IP | PERF_SAMPLE_ID, RECORDING_ERROR_FORMAT},
		{HEADER_BYTES + AT_IDS, UINT64_MAX - 3, RECORDING_ERROR_TRUNCATED},
		{HEADER_BYTES + AT_IDS + 8, 7, RECORDING_ERROR_FORMAT},
		{HEADER_BYTES + AT_IDS + 8, UINT64_MAX - 7, RECORDING_ERROR_TRUNCATED},
	};

	recording_write();
	g_autoptr(GByteArray) bytes = file_bytes();
	put_u64(bytes, damages[_i].at, damages[_i].value);
	file_set(bytes->data, bytes->len);
	assert_refused(damages[_i].code, "cannot read");
}
END_TEST
#define N_DAMAGES 18

START_TEST(malformed_record_ends_the_walk)
{
	static const uint16_t sizes[] = {0, 7, 12, UINT16_MAX - 7};

	recording_write();
	g_autoptr(GByteArray) bytes = file_bytes();
	const size_t data_at = get_u64(bytes, AT_DATA);
	struct perf_event_header *record = NULL;
	g_autoptr(GError) error = NULL;
	size_t at = data_at;

	for (int i = 0; i < 5; i++, at += record->size)
		record = (struct perf_event_header *)(bytes->data + at);
	record->size = sizes[_i];
	file_set(bytes->data, bytes->len);
	struct recording *recording = open_good();
	struct tally tally = {.recording = recording};
	ck_assert(!recording_each(recording, tally_record, &tally, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT));
	ck_assert_uint_eq(tally.records, 4);
	recording_free(recording);
}
END_TEST

/* Without a handler of its own, the reader would end by SIGBUS. */
START_TEST(file_that_becomes_shorter)
{
	g_autoptr(GError) error = NULL;

	recording_write();
	g_autoptr(GByteArray) bytes = file_bytes();

	/* What is on a page that is still there is read as it was. */
	g_byte_array_set_size(bytes, bytes->len + 3 * 4096);
	memset(bytes->data + bytes->len - 3 * 4096, 0, 3 * 4096);
	put_u64(bytes, AT_DATA + 8, bytes->len - get_u64(bytes, AT_DATA));
	file_set(bytes->data, bytes->len);
	struct recording *recording = recording_open(file_path, NULL);

	ck_assert_ptr_nonnull(recording);
	ck_assert_int_eq(ftruncate(file_fd, 0), 0);
	struct tally tally = {.recording = recording};
	ck_assert(!recording_each(recording, tally_record, &tally, &error));
	ck_assert_msg(strstr(error->message, "it became shorter while it was read"), "%s", error->message);
	ck_assert_uint_eq(tally.records, 0);
	recording_free(recording);
}
END_TEST

/* Each event takes memory in every reader. */
START_TEST(too_many_events)
{
	const size_t attr_bytes = 144;

	recording_write();
	g_autoptr(GByteArray) bytes = file_bytes();
	const guint at = bytes->len;

	g_byte_array_set_size(bytes, at + (guint)attr_bytes * (RECORDING_EVENTS_MAX + 1));
	memset(bytes->data + at, 0, bytes->len - at);
	put_u64(bytes, AT_ATTRS, at);
	put_u64(bytes, AT_ATTRS + 8, bytes->len - at);
	file_set(bytes->data, bytes->len);
	assert_refused(RECORDING_ERROR_LIMIT, "it has 1025 events, and at most 1024 are read");
}
END_TEST

START_TEST(damaged_features_spoil_nothing_else)
{
	recording_write();
	g_autoptr(GByteArray) bytes = file_bytes();
	const size_t table_at = get_u64(bytes, AT_DATA) + get_u64(bytes, AT_DATA + 8);
	size_t n_features = 0;

	for (size_t i = 0; i < 4; i++)
		n_features += (size_t)__builtin_popcountll(get_u64(bytes, AT_FEATURES + 8 * i));
	/* Whatever one section holds: all ones, and cut to every shorter size. */
	for (size_t i = 0; i < n_features; i++) {
		g_autoptr(GByteArray) damaged = g_byte_array_new();

		g_byte_array_append(damaged, bytes->data, bytes->len);
		const size_t at = get_u64(bytes, table_at + 16 * i), n = get_u64(bytes, table_at + 16 * i + 8);
		for (size_t short_n = 0; short_n < n; short_n++) {
			put_u64(damaged, table_at + 16 * i + 8, short_n);
			file_set(damaged->data, damaged->len);
			struct recording *recording = open_good();
			ck_assert_uint_eq(tally_of(recording).samples, 10);
			recording_free(recording);
		}
		put_u64(damaged, table_at + 16 * i + 8, n);
		memset(damaged->data + at, 0xff, n);
		file_set(damaged->data, damaged->len);
		struct recording *recording = open_good();
		ck_assert_uint_eq(tally_of(recording).samples, 10);
		recording_free(recording);
	}
}
END_TEST

/* Files as other versions of perf make them. */

START_TEST(header_before_features)
{
	recording_write();
	g_autoptr(GByteArray) bytes = file_bytes();

	put_u64(bytes, AT_SIZE, AT_FEATURES);
	file_set(bytes->data, bytes->len);
	struct recording *recording = open_good();
	ck_assert(!recording_cut_off(recording));
	ck_assert_ptr_null(recording_hostname(recording));
	ck_assert_str_eq(recording_event(recording, 0)->name, "task-clock");
	ck_assert_uint_eq(tally_of(recording).samples, 10);
	recording_free(recording);
}
END_TEST

/* A recording of one event with `attr_bytes` of attr, without ids; `records` as its data, at an odd place. */
static void foreign_write(size_t attr_bytes, const void *records, size_t n)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_RAW, .config = 0x1c2, .sample_type = PERF_SAMPLE_IP};
	const size_t entry_bytes = attr_bytes + 16, data_at = HEADER_BYTES + entry_bytes + 3;
	g_autoptr(GByteArray) bytes = g_byte_array_new();

	g_byte_array_set_size(bytes, (guint)data_at);
	memset(bytes->data, 0, bytes->len);
	memcpy(bytes->data, "PERFILE2", 8);
	put_u64(bytes, AT_SIZE, HEADER_BYTES);
	put_u64(bytes, AT_ATTR_SIZE, entry_bytes);
	put_u64(bytes, AT_ATTRS, HEADER_BYTES);
	put_u64(bytes, AT_ATTRS + 8, entry_bytes);
	put_u64(bytes, AT_DATA, data_at);
	put_u64(bytes, AT_DATA + 8, n);
	memset(bytes->data + HEADER_BYTES, 0xff, attr_bytes);
	memcpy(bytes->data + HEADER_BYTES, &attr, MIN(attr_bytes, sizeof(attr)));
	g_byte_array_append(bytes, records, (guint)n);
	/* One empty feature section: it was finished. */
	put_u64(bytes, AT_FEATURES, 1 << 5);
	g_byte_array_append(bytes, (const guint8[16]){0}, 16);
	file_set(bytes->data, bytes->len);
}

static const uint64_t two_samples[] = {UINT64_C(16) << 48 | PERF_RECORD_SAMPLE, TEXT,
                                       UINT64_C(16) << 48 | PERF_RECORD_SAMPLE, TEXT + 1};

START_TEST(attrs_of_other_sizes)
{
	static const size_t sizes[] = {PERF_ATTR_SIZE_VER0, PERF_ATTR_SIZE_VER5, VPROF_ATTR_BYTES, 136, 4096};

	foreign_write(sizes[_i], two_samples, sizeof(two_samples));
	struct recording *recording = open_good();
	ck_assert_uint_eq(recording_event(recording, 0)->attr.config, 0x1c2);
	ck_assert_str_eq(recording_event(recording, 0)->name, "type-4:0x1c2");
	if (sizes[_i] == PERF_ATTR_SIZE_VER0)
		ck_assert_uint_eq(recording_event(recording, 0)->attr.sig_data, 0);
	const struct tally tally = tally_of(recording);
	ck_assert_uint_eq(tally.samples, 2);
	ck_assert_uint_eq(tally.of_event[0], 2);
	recording_free(recording);
}
END_TEST

START_TEST(auxtrace_data_is_passed_over)
{
	uint64_t records[3 + 5 + 4] = {UINT64_C(24) << 48 | 71, 40, 0};

	memset(records + 3, 0xff, 40);
	memcpy(records + 8, two_samples, sizeof(two_samples));
	foreign_write(VPROF_ATTR_BYTES, records, sizeof(records));
	struct recording *recording = open_good();
	struct tally tally = tally_of(recording);
	ck_assert_uint_eq(tally.records, 3);
	ck_assert_uint_eq(tally.samples, 2);
	recording_free(recording);

	records[1] = UINT64_MAX - 7;
	foreign_write(VPROF_ATTR_BYTES, records, sizeof(records));
	recording = open_good();
	ck_assert(!recording_each(recording, tally_record, &tally, NULL));
	recording_free(recording);
}
END_TEST

#define PACKED_BYTES 32u

/* A zstd frame (RFC 8878) of one raw block that holds `packed`, split over two records, the old kind of odd sizes. */
static GByteArray *compressed_make(uint32_t type, const uint64_t packed[PACKED_BYTES / 8], size_t first_part)
{
	static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, PACKED_BYTES, 1, PACKED_BYTES >> 5, 0};
	uint8_t frame[sizeof(head) + PACKED_BYTES];
	GByteArray *records = g_byte_array_new();
	const size_t parts[] = {first_part, sizeof(frame) - first_part};
	size_t at = 0;

	memcpy(frame, head, sizeof(head));
	memcpy(frame + sizeof(head), packed, PACKED_BYTES);
	for (int i = 0; i < 2; at += parts[i++]) {
		const uint64_t n = parts[i];
		const size_t length_bytes = type == RECORD_COMPRESSED2 ? sizeof(n) : 0;
		const size_t padding = type == RECORD_COMPRESSED2 ? -(size_t)n % 8 : 0;
		const size_t bytes = sizeof(struct perf_event_header) + length_bytes + n + padding;
		const struct perf_event_header header = {.type = type, .size = (uint16_t)bytes};

		g_byte_array_append(records, (const guint8 *)&header, sizeof(header));
		g_byte_array_append(records, (const guint8 *)&n, (guint)length_bytes);
		g_byte_array_append(records, frame + at, (guint)n);
		g_byte_array_append(records, (const guint8 *)"\0\0\0\0\0\0\0", (guint)padding);
	}
	return records;
}

#ifdef VPROF_HAVE_ZSTD
static void compressed_check(void)
{
	struct recording *recording = open_good();
	const struct tally tally = tally_of(recording);

	ck_assert_uint_eq(tally.records, 2);
	ck_assert_uint_eq(tally.samples, 2);
	recording_free(recording);
}
#else
static void compressed_check(void)
{
	struct recording *recording = open_good();
	struct tally tally = {.recording = recording};
	g_autoptr(GError) error = NULL;

	ck_assert(!recording_each(recording, tally_record, &tally, &error));
	ck_assert_ptr_nonnull(strstr(error->message, "libzstd"));
	recording_free(recording);
}
#endif

START_TEST(compressed_records_are_unpacked)
{
	static const uint32_t types[] = {RECORD_COMPRESSED, RECORD_COMPRESSED2};

	for (size_t first_part = 1; first_part < 40; first_part++) {
		g_autoptr(GByteArray) records = compressed_make(types[_i], two_samples, first_part);

		foreign_write(VPROF_ATTR_BYTES, records->data, records->len);
		compressed_check();
	}
}
END_TEST

static void assert_walk_fails(const GByteArray *records)
{
	g_autoptr(GError) error = NULL;

	foreign_write(VPROF_ATTR_BYTES, records->data, records->len);
	struct recording *recording = open_good();
	struct tally tally = {.recording = recording};
	ck_assert(!recording_each(recording, tally_record, &tally, &error));
	ck_assert(g_error_matches(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT));
	recording_free(recording);
}

START_TEST(damaged_compression_is_refused)
{
	g_autoptr(GByteArray) records = compressed_make(RECORD_COMPRESSED, two_samples, 20);

	records->data[8] ^= 1;
	assert_walk_fails(records);
}
END_TEST

START_TEST(what_cannot_be_compressed_is_refused)
{
	static const uint32_t types[] = {RECORD_COMPRESSED, RECORD_COMPRESSED2, RECORD_AUXTRACE};
	/* As AUX data these would be longer than any buffer. */
	const uint64_t packed[] = {UINT64_C(16) << 48 | types[_i], UINT64_C(1) << 40, 0, 0};
	g_autoptr(GByteArray) records = compressed_make(RECORD_COMPRESSED, packed, 20);

	assert_walk_fails(records);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recording_bytes");
	TCase *tests = tcase_create("recording_bytes");

	tcase_add_checked_fixture(tests, file_make, file_drop);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, foreign_files_are_refused);
	tcase_add_test(tests, file_that_becomes_shorter);
	tcase_add_test(tests, too_many_events);
	tcase_add_test(tests, what_is_no_file_is_refused);
	tcase_add_loop_test(tests, damaged_headers_are_refused, 0, N_DAMAGES);
	tcase_add_loop_test(tests, malformed_record_ends_the_walk, 0, 4);
	tcase_add_test(tests, damaged_features_spoil_nothing_else);
	tcase_add_test(tests, header_before_features);
	tcase_add_loop_test(tests, attrs_of_other_sizes, 0, 5);
	tcase_add_test(tests, auxtrace_data_is_passed_over);
	tcase_add_loop_test(tests, compressed_records_are_unpacked, 0, 2);
	tcase_add_test(tests, damaged_compression_is_refused);
	tcase_add_loop_test(tests, what_cannot_be_compressed_is_refused, 0, 3);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
