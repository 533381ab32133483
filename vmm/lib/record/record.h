// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf_event records (linux/perf_event.h), encoded and decoded. All functions work on memory of the caller and allocate
 * nothing; decoders treat the bytes as hostile.
 */
#ifndef VPROF_RECORD_RECORD_H
#define VPROF_RECORD_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/recording.h>

#include "lib/record/text.h"

#define RECORD_BYTES_MAX 65528u /* perf_event_header.size is 16 bits, records are multiples of 8 */
#define RECORD_CHAIN_MAX 512u
#define RECORD_BUILD_ID_BYTES_MAX 20u /* the room for one in PERF_RECORD_MMAP2 and the BUILD_ID feature */

/* The kernel's mapping as perf names it: pid -1, at the address of _text, which is its page_offset too. */
#define RECORD_KERNEL_MAPPING "[kernel.kallsyms]_text"

/*
 * Record types that perf itself adds behind the kernel's (Linux, tools/lib/perf/include/perf/event.h, enum
 * perf_user_event_type). They carry no sample_id.
 */
enum record_user_type {
	RECORD_USER_TYPE_START = 64,
	RECORD_FINISHED_ROUND = 68,
	RECORD_AUXTRACE = 71, /* followed by data that its size does not count */
	RECORD_EVENT_UPDATE = 78,
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
};

/*
 * A PERF_RECORD_SAMPLE with the fields of VPROF_SAMPLE_TYPE, a call chain if n_chain is not 0, raw data if any, and the
 * task's cgroup if has_cgroup.
 */
struct record_sample {
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu;
	uint64_t period;
	uint16_t misc;         /* PERF_RECORD_MISC_KERNEL, _USER or _HYPERVISOR, and flags */
	const uint64_t *chain; /* with PERF_CONTEXT_* words; NULL */
	uint32_t n_chain;
	const void *raw; /* of PERF_SAMPLE_RAW; unaligned and padded when decoded; NULL: none */
	uint32_t raw_bytes;
	bool has_cgroup; /* the attr has PERF_SAMPLE_CGROUP */
	uint64_t cgroup; /* its id, which PERF_RECORD_CGROUP names; 0: not known */
};

/* `with_chain`: the attr has PERF_SAMPLE_CALLCHAIN. Returns the record's bytes, or 0 when `room` is too small. */
size_t record_sample_encode(const struct record_sample *sample, bool with_chain, void *to, size_t room);

/*
 * Decodes a sample of an event with this attr, with any combination of fields in its sample_type, including those of
 * perf's own files. Missing fields are 0. The chain points into `record`, which is 8-byte aligned; fields after the raw
 * data are read only for the cgroup. False when the record is malformed.
 */
bool record_sample_decode_attr(const struct perf_event_header *record, size_t bytes, const struct perf_event_attr *attr,
                               struct record_sample *sample);

/* As above, if only sample_type of the attr matters: no values of counters, branches or registers. */
static inline bool record_sample_decode(const struct perf_event_header *record, size_t bytes, uint64_t sample_type,
                                        struct record_sample *sample)
{
	const struct perf_event_attr attr = {.sample_type = sample_type};

	return record_sample_decode_attr(record, bytes, &attr, sample);
}

/* What a sample of a wait says of it (VPROF_OFF_CPU_EVENT); all 0 where it says nothing. */
struct vprof_wait record_sample_wait(const struct record_sample *sample);

/*
 * The other records. Each has a struct for what it says, which is encoded and decoded. Encoded ones end with the
 * sample_id fields of VPROF_SAMPLE_TYPE (attr.sample_id_all); an encoder returns the record's bytes, or 0 when `room`
 * is too small. A decoder returns false when the record is of another type or malformed; texts and build-ids that it
 * gives point into `record`.
 */
struct record_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu;
	uint64_t id;
};

struct record_lost {
	uint64_t id;
	uint64_t lost;
};
size_t record_lost_encode(const struct record_lost *lost, const struct record_id *id, void *to, size_t room);
bool record_lost_decode(const struct perf_event_header *record, size_t bytes, struct record_lost *lost);

/* PERF_RECORD_LOST_SAMPLES: how many of the lost records were samples. */
size_t record_lost_samples_encode(uint64_t lost, const struct record_id *id, void *to, size_t room);
bool record_lost_samples_decode(const struct perf_event_header *record, size_t bytes, uint64_t *lost);

/* The sum of both. */
struct record_losses {
	uint64_t records, samples;
	bool has_samples; /* there was a PERF_RECORD_LOST_SAMPLES */
};
/* Adds what `record` says; nothing if it is of another type or malformed. */
void record_losses_take(struct record_losses *losses, const struct perf_event_header *record, size_t bytes);
/* vprof 0.2 wrote no PERF_RECORD_LOST_SAMPLES: all that it lost counts as samples. */
uint64_t record_losses_samples(const struct record_losses *losses);
uint64_t record_losses_others(const struct record_losses *losses);

/* PERF_RECORD_THROTTLE, or _UNTHROTTLE: the host's kernel stops the event with this id, or lets it go on (`ends`). */
struct record_throttle {
	bool ends;
	uint64_t time_ns;
	uint64_t id;
};
size_t record_throttle_encode(const struct record_throttle *throttle, const struct record_id *id, void *to,
                              size_t room);
bool record_throttle_decode(const struct perf_event_header *record, size_t bytes, struct record_throttle *throttle);

struct record_comm {
	uint32_t pid, tid;
	bool exec; /* PERF_RECORD_MISC_COMM_EXEC */
	struct untrusted_text comm;
};
size_t record_comm_encode(const struct record_comm *comm, const struct record_id *id, void *to, size_t room);
bool record_comm_decode(const struct perf_event_header *record, size_t bytes, struct record_comm *comm);

struct record_task {
	uint32_t type; /* PERF_RECORD_FORK or PERF_RECORD_EXIT */
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};
size_t record_task_encode(const struct record_task *task, const struct record_id *id, void *to, size_t room);
bool record_task_decode(const struct perf_event_header *record, size_t bytes, struct record_task *task);

/* PERF_RECORD_SWITCH_CPU_WIDE: the task of the sample_id leaves the processor to the other one (`out`), or follows it.
 */
struct record_switch {
	bool out;
	uint32_t other_pid, other_tid;
};
size_t record_switch_encode(const struct record_switch *change, const struct record_id *id, void *to, size_t room);
bool record_switch_decode(const struct perf_event_header *record, size_t bytes, struct record_switch *change);

/*
 * PERF_RECORD_READ: what an event has counted of a task. As an event with VPROF_READ_FORMAT writes it; when decoded,
 * the times are 0 if the attr's read_format leaves them out. False also with PERF_FORMAT_GROUP.
 */
struct record_read {
	uint32_t pid, tid;
	uint64_t value;
	uint64_t enabled_ns, running_ns; /* time with the event enabled, and with it counting */
};
size_t record_read_encode(const struct record_read *read, const struct record_id *id, void *to, size_t room);
bool record_read_decode(const struct perf_event_header *record, size_t bytes, uint64_t read_format,
                        struct record_read *read);

/* PERF_RECORD_MMAP2 with a build-id, else PERF_RECORD_MMAP. */
struct record_mmap {
	uint16_t mode; /* PERF_RECORD_MISC_KERNEL or _USER */
	uint32_t pid, tid;
	uint64_t start, bytes, page_offset;
	const uint8_t *build_id; /* NULL: none */
	size_t build_id_bytes;   /* with build_id: 1..RECORD_BUILD_ID_BYTES_MAX; others are not encoded */
	struct untrusted_text file_name;
};
size_t record_mmap_encode(const struct record_mmap *mmap, const struct record_id *id, void *to, size_t room);
bool record_mmap_decode(const struct perf_event_header *record, size_t bytes, struct record_mmap *mmap);

struct record_cgroup {
	uint64_t cgroup;
	struct untrusted_text path; /* from the root cgroup: "/", "/a/b" */
};
size_t record_cgroup_encode(const struct record_cgroup *cgroup, const struct record_id *id, void *to, size_t room);
bool record_cgroup_decode(const struct perf_event_header *record, size_t bytes, struct record_cgroup *cgroup);

/* A kernel symbol that is in no file, and the code that has it. */
struct record_ksymbol {
	uint64_t address;
	uint32_t bytes;
	const char *name;
};
size_t record_ksymbol_encode(const struct record_ksymbol *symbol, const struct record_id *id, void *to, size_t room);

/* perf's own record, without sample_id. */
struct record_event_name {
	uint64_t event_id;
	struct untrusted_text name;
};
size_t record_event_name_encode(const struct record_event_name *event, void *to, size_t room);
bool record_event_name_decode(const struct perf_event_header *record, size_t bytes, struct record_event_name *event);

/* sample_id of a record that is no sample, in a recording with sample_id_all; false when it has none. */
bool record_id_decode(const struct perf_event_header *record, size_t bytes, uint64_t sample_type, struct record_id *id);

/* Time of any record in a recording with sample_id_all; false when it has none. */
bool record_time(const struct perf_event_header *record, size_t bytes, uint64_t sample_type, uint64_t *time_ns);

/*
 * The record at the start of `bytes`; NULL when the header does not fit, its size is not a multiple of 8, below the
 * header's or beyond `bytes`.
 */
const struct perf_event_header *record_check(const void *at, size_t bytes);

#endif
