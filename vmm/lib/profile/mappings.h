// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which file is mapped at an address of a process at a time, from the PERF_RECORD_MMAP and MMAP2 records of a
 * recording: files in user space, and the kernel's loadable modules ("[virtio_blk]"). Of two mappings that overlap the
 * later one counts.
 */
#ifndef VPROF_PROFILE_MAPPINGS_H
#define VPROF_PROFILE_MAPPINGS_H

#include <stdbool.h>

#include "lib/profile/mode.h"
#include "lib/record/record.h"

/* One for each path and build-id. */
struct mapped_file {
	struct untrusted_text path; /* of the guest; or a module's "[name]" */
	char *name;                 /* the same, printable */
	uint8_t build_id[RECORD_BUILD_ID_BYTES_MAX];
	size_t build_id_bytes; /* 0: not known */
	bool is_another;       /* the path was first seen with another build-id */
	/* Of memory without a file, which perf has named as the file that may say what is there; 0: no such memory. */
	uint32_t perf_map_pid;
	char *python; /* "py::NAME" of the code object that is there, of which `name` is the file; NULL: it is none */
};

/*
 * Cuts "py::NAME:FILE" (guest/python.h) to "py::NAME" and returns the file, which is in it; NULL: it is not of this
 * form.
 */
char *python_name_split(char *name);

struct mapping {
	const struct mapped_file *file;
	uint64_t start, end;
	uint64_t file_offset; /* of `start` */
	uint64_t time_ns;     /* since when it counts */
};

static inline uint64_t mapping_file_offset(const struct mapping *mapping, uint64_t ip)
{
	return ip - mapping->start + mapping->file_offset;
}

struct mappings;

struct mappings *mappings_new(void);
void mappings_free(struct mappings *mappings);

/* Takes records about mappings in user space and modules, in any order of times; others are ignored. */
void mappings_add(struct mappings *mappings, const struct perf_event_header *record, size_t bytes, uint64_t time_ns);

/*
 * NULL: no mapping is known there. Lives as long as `mappings`. Modules are recorded some time after they are loaded,
 * and so are an agent's mappings where tasks are not told apart: where nothing else was mapped, these count for earlier
 * times as well.
 */
const struct mapping *mappings_find(struct mappings *mappings, enum profile_mode mode, uint32_t pid, uint64_t ip,
                                    uint64_t time_ns);

/* Whether it is a loadable module of the kernel. */
static inline bool mapping_is_module(const struct mapping *mapping)
{
	return mapping->start >> 63 != 0;
}

#endif
