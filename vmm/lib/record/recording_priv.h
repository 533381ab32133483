// SPDX-License-Identifier: BSD-2-Clause
/*
 * The perf.data file format, as far as the writer and the reader share it (Linux,
 * tools/perf/Documentation/perf.data-file-format.txt and tools/perf/util/header.h).
 */
#ifndef VPROF_RECORD_RECORDING_PRIV_H
#define VPROF_RECORD_RECORDING_PRIV_H

#include <glib.h>
#include <stdint.h>
#include <vprof/recording.h>

#include "lib/record/record.h"
#include "lib/record/writer.h"

#define FILE_MAGIC "PERFILE2"
#define FILE_MAGIC_SWAPPED "2ELIFREP"
#define FILE_MAGIC_V1 "PERFFILE"
#define FILE_MAGIC_BYTES 8u

struct file_section {
	uint64_t offset;
	uint64_t bytes;
};

struct file_header {
	char magic[FILE_MAGIC_BYTES];
	uint64_t size;
	uint64_t attr_size; /* of one entry of `attrs`: a perf_event_attr and a file_section with its ids */
	struct file_section attrs;
	struct file_section data; /* bytes 0: perf record was not finished */
	struct file_section event_types;
	uint64_t features[4]; /* for each bit, in order, a file_section right behind the data; ours: 0 until finished */
};
_Static_assert(sizeof(struct file_header) == 104, "no padding");

#define FILE_HEADER_BYTES_PIPE 16u /* `perf record -o -`: magic and size only */
#define FILE_HEADER_BYTES_OLD ((uint64_t)offsetof(struct file_header, features)) /* before there were features */

/* An entry of `attrs` as we write it. */
struct file_attr {
	uint8_t attr[VPROF_ATTR_BYTES];
	struct file_section ids;
};
_Static_assert(sizeof(struct file_attr) == 144, "no padding");

enum file_feature {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_RELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_CPUS = 7,
	FEATURE_MEMORY = 10,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENTS = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_BITS = 256,
};

#define KERNEL_DSO_NAME "[kernel.kallsyms]" /* perf's name for the kernel of the recorded machine */

/* An entry of FEATURE_BUILD_ID; the file name follows, NUL-terminated and padded. */
struct build_id_wire {
	struct perf_event_header header;
	int32_t pid;
	uint8_t build_id[RECORD_BUILD_ID_BYTES_MAX];
	uint8_t build_id_bytes; /* valid with BUILD_ID_MISC_SIZE */
	uint8_t reserved[3];
};
_Static_assert(sizeof(struct build_id_wire) == 36, "no padding");
#define BUILD_ID_MISC_SIZE (1u << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */

/* VPROF_FEATURE_SYMBOLS. */
struct symbols_wire {
	uint32_t version;
	uint32_t count;
	uint64_t text_bytes;
};
struct symbol_wire {
	uint64_t address;
	uint64_t size;
	uint32_t name;
	uint32_t module;
};
_Static_assert(sizeof(struct symbols_wire) == 16 && sizeof(struct symbol_wire) == 24, "no padding");

/*
 * The feature sections of a recording; their first byte (the table) will stand at file offset `offset`. Fills the bits
 * of the header. Free with g_byte_array_unref.
 */
struct recording_span {
	uint64_t first_ns, last_ns; /* times of the first and the last sample */
};
GByteArray *features_encode(const struct recording_features *features, const struct recording_event *events,
                            size_t n_events, const struct recording_span *span, uint64_t offset, uint64_t bits[4]);

#endif
