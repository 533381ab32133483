// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf_event records (linux/perf_event.h), built and taken apart. Everything here works on caller's memory, allocates
 * nothing, and treats the bytes it reads as hostile.
 */
#ifndef VPROF_RECORD_RECORD_H
#define VPROF_RECORD_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/recording.h>

#define RECORD_BYTES_MAX 65528u /* perf_event_header.size is 16 bits, records are multiples of 8 */
#define RECORD_CHAIN_MAX 512u

/* A PERF_RECORD_SAMPLE with the fields of VPROF_SAMPLE_TYPE, and a call chain if n_chain is not 0. */
struct record_sample {
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu;
	uint64_t period;
	uint16_t misc;         /* PERF_RECORD_MISC_KERNEL, _USER or _HYPERVISOR, and flags */
	const uint64_t *chain; /* with PERF_CONTEXT_* marks; NULL */
	uint32_t n_chain;
};

/* `with_chain`: the attr has PERF_SAMPLE_CALLCHAIN. Returns the record's bytes, or 0 when `room` is too small. */
size_t record_sample_encode(const struct record_sample *sample, bool with_chain, void *to, size_t room);

/*
 * `sample_type` as in the attr, any combination of fields (files made by perf itself too). Fields the record lacks are
 * 0. The chain points into `record`. False when the record is malformed.
 */
bool record_sample_decode(const struct perf_event_header *record, size_t bytes, uint64_t sample_type,
                          struct record_sample *sample);

/*
 * The other records, each with the sample_id fields of VPROF_SAMPLE_TYPE (attr.sample_id_all) behind them; bytes, or 0
 * without room.
 */
struct record_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu;
	uint64_t id;
};
size_t record_lost_encode(uint64_t lost, const struct record_id *id, void *to, size_t room);
size_t record_comm_encode(const char *comm, bool exec, const struct record_id *id, void *to, size_t room);
size_t record_mmap_encode(uint16_t misc, uint32_t pid, uint64_t start, uint64_t bytes, uint64_t page_offset,
                          const char *file_name, const struct record_id *id, void *to, size_t room);

/* Time of any record in a recording with sample_id_all; false when it has none. */
bool record_time(const struct perf_event_header *record, size_t bytes, uint64_t sample_type, uint64_t *time_ns);

/*
 * The record at the start of `bytes`; NULL when the header does not fit, its size is not a multiple of 8, below the
 * header's or beyond `bytes`.
 */
const struct perf_event_header *record_check(const void *at, size_t bytes);

#endif
