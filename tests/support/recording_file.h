// SPDX-License-Identifier: BSD-2-Clause
/* A recording in memory, made by the writer, and what a test asks about one. Works on one file for each test. */
#ifndef VPROF_TEST_SUPPORT_RECORDING_FILE_H
#define VPROF_TEST_SUPPORT_RECORDING_FILE_H

#include <check.h>
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/record/reader.h"
#include "lib/record/record.h"
#include "lib/record/writer.h"

#define TEXT UINT64_C(0xffffffff81000000)

/* Offsets in the file's header (perf.data-file-format.txt). */
enum { AT_SIZE = 8, AT_ATTR_SIZE = 16, AT_ATTRS = 24, AT_DATA = 40, AT_FEATURES = 72, HEADER_BYTES = 104 };
/* Offsets in an entry of attrs, which has an attr of 128 bytes. */
enum { AT_SAMPLE_TYPE = 24, AT_IDS = 128, ENTRY_BYTES = 144 };

static int file_fd;
static char file_path[64];

static inline void file_make(void)
{
	file_fd = memfd_create("recording", MFD_CLOEXEC);
	g_snprintf(file_path, sizeof(file_path), "/proc/self/fd/%d", file_fd);
}

static inline void file_drop(void)
{
	close(file_fd);
}

static inline GByteArray *file_bytes(void)
{
	struct stat status;

	ck_assert_int_eq(fstat(file_fd, &status), 0);
	GByteArray *bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, (guint)status.st_size);
	ck_assert_int_eq(pread(file_fd, bytes->data, bytes->len, 0), (ssize_t)bytes->len);
	return bytes;
}

static inline void file_set(const void *bytes, size_t n)
{
	ck_assert_int_eq(ftruncate(file_fd, 0), 0);
	ck_assert_int_eq(pwrite(file_fd, bytes, n, 0), (ssize_t)n);
}

static inline uint64_t get_u64(const GByteArray *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes->data + at, sizeof(value));
	return value;
}

static inline void put_u64(GByteArray *bytes, size_t at, uint64_t value)
{
	memcpy(bytes->data + at, &value, sizeof(value));
}

/* What the recordings of these tests hold. */

static const uint64_t ids[2][2] = {{11, 12}, {22, 21}};
static const uint8_t build_id[20] = {0xde, 0xad, 0xbe, 0xef, [19] = 0x01};
#define BUILD_ID_TEXT "deadbeef00000000000000000000000000000001"

static const struct recording_symbol symbols[] = {
	{TEXT + 0x10, 0x10, "first", ""},
	{TEXT + 0x20, 0x20, "second", ""},
	{TEXT + 0x100, 0x10, "in_module", "ext4"},
};

static const char *const cmdline[] = {"vprof", "run", "--kernel", "vmlinux", NULL};

static const struct recording_features features = {
	.arch = ARCH_ARM64,
	.hostname = "guest",
	.release = "6.1.0-test",
	.version = "0.1.0",
	.cmdline = cmdline,
	.vcpus = 2,
	.memory_bytes = 512 << 20,
	.kernel_build_id = build_id,
	.kernel_build_id_bytes = sizeof(build_id),
	.description = "{\"version\": 1}",
	.symbols = symbols,
	.n_symbols = G_N_ELEMENTS(symbols),
};

static inline struct recording_writer *writer_open(const char *path, GError **error)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_type = VPROF_SAMPLE_TYPE,
		.sample_id_all = 1,
	};
	const struct recording_event events[] = {{attr, "task-clock", ids[0], 2}, {attr, "timer:u", ids[1], 2}};

	return recording_writer_open(path, events, G_N_ELEMENTS(events), error);
}

static inline void write_record(struct recording_writer *writer, const uint64_t *record, size_t bytes)
{
	GError *error = NULL;

	ck_assert_uint_ne(bytes, 0);
	ck_assert_msg(recording_writer_record(writer, (const struct perf_event_header *)record, &error), "%s",
	              error ? error->message : "?");
}

/* A mapping with the kernel's build-id, 10 samples in two rounds, a loss. */
static inline void write_records(struct recording_writer *writer)
{
	uint64_t buffer[64];
	const struct record_id id = {.id = 11};
	const struct record_mmap kernel = {
		.mode = PERF_RECORD_MISC_KERNEL,
		.pid = UINT32_MAX,
		.start = TEXT,
		.bytes = 0x1000,
		.page_offset = TEXT,
		.build_id = build_id,
		.build_id_bytes = sizeof(build_id),
		.file_name = {RECORD_KERNEL_MAPPING},
	};

	write_record(writer, buffer, record_mmap_encode(&kernel, &id, buffer, sizeof(buffer)));
	for (unsigned i = 0; i < 10; i++) {
		const struct record_sample sample = {.id = ids[i % 2][i / 2 % 2],
		                                     .ip = TEXT + i,
		                                     .time_ns = 1000 + i,
		                                     .misc = PERF_RECORD_MISC_KERNEL};

		write_record(writer, buffer, record_sample_encode(&sample, false, buffer, sizeof(buffer)));
		if (i % 5 == 4)
			ck_assert(recording_writer_round(writer, NULL));
	}
	write_record(writer, buffer, record_lost_encode(&(struct record_lost){id.id, 3}, &id, buffer, sizeof(buffer)));
}

static inline void recording_write(void)
{
	GError *error = NULL;
	struct recording_writer *writer = writer_open(file_path, &error);

	ck_assert_msg(writer != NULL, "%s", error ? error->message : "?");
	write_records(writer);
	ck_assert(recording_writer_finish(writer, &features, &error));
	recording_writer_free(writer);
}

static inline struct recording *open_good(void)
{
	GError *error = NULL;
	struct recording *recording = recording_open(file_path, &error);

	ck_assert_msg(recording != NULL, "%s", error ? error->message : "?");
	return recording;
}

struct tally {
	const struct recording *recording;
	size_t records, samples, bytes;
	size_t of_event[2];
	size_t stop_after; /* 0: never */
};

static inline bool tally_record(const struct perf_event_header *record, size_t bytes, void *data)
{
	struct tally *tally = data;
	struct record_sample sample;
	int event;

	ck_assert_uint_eq(bytes, record->size);
	ck_assert_uint_eq((uintptr_t)record % 8, 0);
	tally->records++;
	tally->bytes += bytes;
	if (recording_sample(tally->recording, record, bytes, &sample, &event)) {
		ck_assert_uint_eq(sample.ip, TEXT + tally->samples);
		tally->samples++;
		ck_assert(event == 0 || event == 1);
		tally->of_event[event]++;
	}
	return tally->records != tally->stop_after;
}

static inline struct tally tally_of(struct recording *recording)
{
	struct tally tally = {.recording = recording};
	GError *error = NULL;

	ck_assert_msg(recording_each(recording, tally_record, &tally, &error), "%s", error ? error->message : "?");
	return tally;
}

#endif
