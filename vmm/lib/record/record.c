// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/record.h"

#include <endian.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/record/cursor.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "records are written in this machine's byte order");

/* Encoding. */

/* A sample with the fields of VPROF_SAMPLE_TYPE, as it lies in memory. */
struct sample_wire {
	struct perf_event_header header;
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
};
_Static_assert(sizeof(struct sample_wire) == 56, "no padding");

/* The end of every other record (linux/perf_event.h, struct sample_id) with VPROF_SAMPLE_TYPE. */
struct sample_id_wire {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};
_Static_assert(sizeof(struct sample_id_wire) == 32, "no padding");

struct lost_wire {
	uint64_t id, lost;
};

/* Samples that a BPF filter of perf record left out (Linux, tools/lib/perf: PERF_RECORD_MISC_LOST_SAMPLES_BPF). */
#define MISC_LOST_SAMPLES_BPF (1u << 15)

struct throttle_wire {
	uint64_t time_ns, id, stream_id;
};

struct comm_wire {
	uint32_t pid, tid;
};

/* PERF_RECORD_FORK and PERF_RECORD_EXIT. */
struct task_wire {
	uint32_t pid, parent_pid;
	uint32_t tid, parent_tid;
	uint64_t time_ns;
};
_Static_assert(sizeof(struct task_wire) == 24, "no padding");

/* PERF_RECORD_SWITCH_CPU_WIDE: the next task with PERF_RECORD_MISC_SWITCH_OUT, else the previous one. */
struct switch_wire {
	uint32_t pid, tid;
};

/* PERF_RECORD_READ with VPROF_READ_FORMAT. */
struct read_wire {
	uint32_t pid, tid;
	uint64_t value, enabled_ns, running_ns;
};
_Static_assert(sizeof(struct read_wire) == 32, "no padding");

struct mmap_wire {
	uint32_t pid, tid;
	uint64_t start, bytes, page_offset;
};

/* What PERF_RECORD_MMAP2 has between those fields and the file name, with PERF_RECORD_MISC_MMAP_BUILD_ID. */
struct mmap2_wire {
	struct mmap_wire mmap;
	uint8_t build_id_bytes;
	uint8_t reserved[3];
	uint8_t build_id[RECORD_BUILD_ID_BYTES_MAX];
	uint32_t protection, flags;
};
_Static_assert(sizeof(struct mmap2_wire) == sizeof(struct mmap_wire) + 32, "no padding");

struct cgroup_wire {
	uint64_t id;
};

struct ksymbol_wire {
	uint64_t address;
	uint32_t bytes;
	uint16_t type, flags; /* PERF_RECORD_KSYMBOL_TYPE_UNKNOWN; registered */
};
_Static_assert(sizeof(struct ksymbol_wire) == 16, "no padding");

struct event_update_wire {
	uint64_t kind;
	uint64_t event_id;
};
#define EVENT_UPDATE_NAME 2u /* PERF_EVENT_UPDATE__NAME */

#define BRANCH_COUNTERS (1u << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, of Linux 6.8 */

/* A size of 32 bits, the data, and what makes both a multiple of 8 (kernel/events/core.c, perf_prepare_sample). */
static size_t raw_room(const struct record_sample *sample)
{
	return sample->raw ? (sizeof(uint32_t) + sample->raw_bytes + 7) & ~(size_t)7 : 0;
}

static void raw_put(const struct record_sample *sample, uint8_t *to, size_t room)
{
	const uint32_t size = (uint32_t)(room - sizeof(size));

	memset(to, 0, room);
	memcpy(to, &size, sizeof(size));
	memcpy(to + sizeof(size), sample->raw, sample->raw_bytes);
}

size_t record_sample_encode(const struct record_sample *sample, bool with_chain, void *to, size_t room)
{
	const uint64_t n_chain = sample->n_chain;
	const size_t chain_bytes = with_chain ? sizeof(n_chain) * (1 + n_chain) : 0;
	const size_t raw_bytes = raw_room(sample);
	const size_t cgroup_bytes = sample->has_cgroup ? sizeof(sample->cgroup) : 0;
	const size_t bytes = sizeof(struct sample_wire) + chain_bytes + raw_bytes + cgroup_bytes;

	if (bytes > room || bytes > RECORD_BYTES_MAX)
		return 0;
	const struct sample_wire wire = {
		.header = {.type = PERF_RECORD_SAMPLE, .misc = sample->misc, .size = (uint16_t)bytes},
		.id = sample->id,
		.ip = sample->ip,
		.pid = sample->pid,
		.tid = sample->tid,
		.time_ns = sample->time_ns,
		.cpu = sample->cpu,
		.period = sample->period,
	};
	memcpy(to, &wire, sizeof(wire));
	if (with_chain) {
		uint8_t *chain = (uint8_t *)to + sizeof(wire);

		memcpy(chain, &n_chain, sizeof(n_chain));
		if (n_chain)
			memcpy(chain + sizeof(n_chain), sample->chain, n_chain * sizeof(n_chain));
	}
	if (raw_bytes)
		raw_put(sample, (uint8_t *)to + bytes - cgroup_bytes - raw_bytes, raw_bytes);
	if (cgroup_bytes)
		memcpy((uint8_t *)to + bytes - cgroup_bytes, &sample->cgroup, cgroup_bytes);
	return bytes;
}

/* Header, body, NUL-padded text (NULL: none), sample_id (NULL: none). */
static size_t record_assemble(uint32_t type, uint16_t misc, const void *body, size_t body_bytes, const char *text,
                              const struct record_id *id, void *to, size_t room)
{
	const size_t text_bytes = text ? strlen(text) + 1 : 0;
	const size_t padded_bytes = (text_bytes + 7) & ~(size_t)7;
	const size_t id_bytes = id ? sizeof(struct sample_id_wire) : 0;
	const size_t bytes = sizeof(struct perf_event_header) + body_bytes + padded_bytes + id_bytes;
	uint8_t *at = to;

	if (bytes > room || bytes > RECORD_BYTES_MAX)
		return 0;
	memcpy(at, &(struct perf_event_header){.type = type, .misc = misc, .size = (uint16_t)bytes},
	       sizeof(struct perf_event_header));
	at += sizeof(struct perf_event_header);
	memcpy(at, body, body_bytes);
	at += body_bytes;
	memset(at, 0, padded_bytes);
	if (text)
		memcpy(at, text, text_bytes);
	at += padded_bytes;
	if (id)
		memcpy(at,
		       &(struct sample_id_wire){
			       .pid = id->pid, .tid = id->tid, .time_ns = id->time_ns, .cpu = id->cpu, .id = id->id},
		       sizeof(struct sample_id_wire));
	return bytes;
}

size_t record_lost_encode(const struct record_lost *lost, const struct record_id *id, void *to, size_t room)
{
	const struct lost_wire body = {lost->id, lost->lost};

	return record_assemble(PERF_RECORD_LOST, 0, &body, sizeof(body), NULL, id, to, room);
}

size_t record_lost_samples_encode(uint64_t lost, const struct record_id *id, void *to, size_t room)
{
	return record_assemble(PERF_RECORD_LOST_SAMPLES, 0, &lost, sizeof(lost), NULL, id, to, room);
}

size_t record_throttle_encode(const struct record_throttle *throttle, const struct record_id *id, void *to, size_t room)
{
	const struct throttle_wire body = {throttle->time_ns, throttle->id, throttle->id};

	return record_assemble(throttle->ends ? PERF_RECORD_UNTHROTTLE : PERF_RECORD_THROTTLE, 0, &body, sizeof(body),
	                       NULL, id, to, room);
}

size_t record_comm_encode(const struct record_comm *comm, const struct record_id *id, void *to, size_t room)
{
	const struct comm_wire body = {comm->pid, comm->tid};

	return record_assemble(PERF_RECORD_COMM, comm->exec ? PERF_RECORD_MISC_COMM_EXEC : 0, &body, sizeof(body),
	                       comm->comm.raw, id, to, room);
}

size_t record_task_encode(const struct record_task *task, const struct record_id *id, void *to, size_t room)
{
	const struct task_wire body = {task->pid, task->parent_pid, task->tid, task->parent_tid, task->time_ns};

	return record_assemble(task->type, 0, &body, sizeof(body), NULL, id, to, room);
}

size_t record_switch_encode(const struct record_switch *change, const struct record_id *id, void *to, size_t room)
{
	const struct switch_wire body = {change->other_pid, change->other_tid};

	return record_assemble(PERF_RECORD_SWITCH_CPU_WIDE, change->out ? PERF_RECORD_MISC_SWITCH_OUT : 0, &body,
	                       sizeof(body), NULL, id, to, room);
}

size_t record_read_encode(const struct record_read *read, const struct record_id *id, void *to, size_t room)
{
	const struct read_wire body = {read->pid, read->tid, read->value, read->enabled_ns, read->running_ns};

	return record_assemble(PERF_RECORD_READ, 0, &body, sizeof(body), NULL, id, to, room);
}

size_t record_mmap_encode(const struct record_mmap *mmap, const struct record_id *id, void *to, size_t room)
{
	/* vprof records mappings of code only. */
	struct mmap2_wire body = {
		.mmap = {mmap->pid, mmap->tid, mmap->start, mmap->bytes, mmap->page_offset},
		.protection = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
	};

	if (!mmap->build_id)
		return record_assemble(PERF_RECORD_MMAP, mmap->mode, &body.mmap, sizeof(body.mmap), mmap->file_name.raw,
		                       id, to, room);
	if (mmap->build_id_bytes < 1 || mmap->build_id_bytes > sizeof(body.build_id))
		return 0;
	body.build_id_bytes = (uint8_t)mmap->build_id_bytes;
	memcpy(body.build_id, mmap->build_id, mmap->build_id_bytes);
	return record_assemble(PERF_RECORD_MMAP2, mmap->mode | PERF_RECORD_MISC_MMAP_BUILD_ID, &body, sizeof(body),
	                       mmap->file_name.raw, id, to, room);
}

size_t record_cgroup_encode(const struct record_cgroup *cgroup, const struct record_id *id, void *to, size_t room)
{
	const struct cgroup_wire body = {.id = cgroup->cgroup};

	return record_assemble(PERF_RECORD_CGROUP, 0, &body, sizeof(body), cgroup->path.raw, id, to, room);
}

size_t record_ksymbol_encode(const struct record_ksymbol *symbol, const struct record_id *id, void *to, size_t room)
{
	const struct ksymbol_wire body = {.address = symbol->address, .bytes = symbol->bytes};

	return record_assemble(PERF_RECORD_KSYMBOL, 0, &body, sizeof(body), symbol->name, id, to, room);
}

size_t record_event_name_encode(const struct record_event_name *event, void *to, size_t room)
{
	const struct event_update_wire body = {.kind = EVENT_UPDATE_NAME, .event_id = event->event_id};

	return record_assemble(RECORD_EVENT_UPDATE, 0, &body, sizeof(body), event->name.raw, NULL, to, room);
}

/* Decoding. */

static struct cursor cursor_body(const struct perf_event_header *record, size_t bytes)
{
	return (struct cursor){(const uint8_t *)(record + 1), bytes - sizeof(*record)};
}

/* Takes a field of a sample, which is present only if its bit of sample_type is set. */
static inline bool take_u64(struct cursor *cursor, uint64_t present, uint64_t *value)
{
	return !present || cursor_take(cursor, value, sizeof(*value));
}

static inline bool take_u32_pair(struct cursor *cursor, uint64_t present, uint32_t *first, uint32_t *second)
{
	return !present || (cursor_take(cursor, first, sizeof(*first)) && cursor_take(cursor, second, sizeof(*second)));
}

/* A NUL-terminated text within what is left. */
static bool take_text(struct cursor *cursor, const char **text)
{
	if (!memchr(cursor->at, '\0', cursor->left))
		return false;
	*text = (const char *)cursor->at;
	return true;
}

/* Bytes of fields that are 8 bytes each, one for each bit. */
static inline size_t fields_bytes(uint64_t bits)
{
	return sizeof(uint64_t) * (size_t)__builtin_popcountll(bits);
}

/* The counter values of PERF_SAMPLE_READ (linux/perf_event.h, struct read_format). */
static bool skip_read(struct cursor *cursor, uint64_t format)
{
	const size_t times_bytes =
		fields_bytes(format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
	const size_t value_bytes = sizeof(uint64_t) + fields_bytes(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));
	uint64_t n = 1;

	/* In a group, the times follow the number of values; otherwise the value, which is the same to skip. */
	return take_u64(cursor, format & PERF_FORMAT_GROUP, &n) && cursor_skip(cursor, times_bytes) &&
	       n <= cursor->left / value_bytes && cursor_skip(cursor, n * value_bytes);
}

static bool take_chain(struct cursor *cursor, struct record_sample *sample)
{
	uint64_t n;

	if (!cursor_take(cursor, &n, sizeof(n)) || n > cursor->left / sizeof(uint64_t))
		return false;
	if (n) {
		sample->chain = (const uint64_t *)(const void *)cursor->at;
		sample->n_chain = (uint32_t)n;
	}
	return cursor_skip(cursor, n * sizeof(uint64_t));
}

static bool take_raw(struct cursor *cursor, struct record_sample *sample)
{
	uint32_t size;

	if (!cursor_take(cursor, &size, sizeof(size)) || size > cursor->left)
		return false;
	sample->raw = cursor->at;
	sample->raw_bytes = size;
	return cursor_skip(cursor, size);
}

/* PERF_SAMPLE_BRANCH_STACK (kernel/events/core.c, perf_output_sample). */
static bool skip_branches(struct cursor *cursor, uint64_t branch_type)
{
	const size_t index_bytes = branch_type & PERF_SAMPLE_BRANCH_HW_INDEX ? sizeof(uint64_t) : 0;
	const size_t branch_bytes =
		sizeof(struct perf_branch_entry) + (branch_type & BRANCH_COUNTERS ? sizeof(uint64_t) : 0);
	uint64_t n;

	return cursor_take(cursor, &n, sizeof(n)) && cursor_skip(cursor, index_bytes) &&
	       n <= cursor->left / branch_bytes && cursor_skip(cursor, n * branch_bytes);
}

/* An ABI, and without one no registers. */
static bool skip_registers(struct cursor *cursor, uint64_t registers)
{
	uint64_t abi;

	return cursor_take(cursor, &abi, sizeof(abi)) &&
	       (abi == PERF_SAMPLE_REGS_ABI_NONE || cursor_skip(cursor, fields_bytes(registers)));
}

/* A size; if it is not 0, as many bytes, and how many of them are valid. */
static bool skip_stack(struct cursor *cursor)
{
	uint64_t size;

	return cursor_take(cursor, &size, sizeof(size)) &&
	       (size == 0 ||
	        (size <= cursor->left && cursor_skip(cursor, size) && cursor_skip(cursor, sizeof(uint64_t))));
}

/* Skips what follows the raw data, up to the cgroup. */
static bool take_cgroup(struct cursor *cursor, const struct perf_event_attr *attr, struct record_sample *sample)
{
	const uint64_t type = attr->sample_type;
	const uint64_t words = type & (PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION);

	if ((type & PERF_SAMPLE_BRANCH_STACK) && !skip_branches(cursor, attr->branch_sample_type))
		return false;
	if ((type & PERF_SAMPLE_REGS_USER) && !skip_registers(cursor, attr->sample_regs_user))
		return false;
	if ((type & PERF_SAMPLE_STACK_USER) && !skip_stack(cursor))
		return false;
	/* One weight, in whichever of its two forms. */
	if (!cursor_skip(cursor, type & PERF_SAMPLE_WEIGHT_TYPE ? sizeof(uint64_t) : 0) ||
	    !cursor_skip(cursor, fields_bytes(words)))
		return false;
	if ((type & PERF_SAMPLE_REGS_INTR) && !skip_registers(cursor, attr->sample_regs_intr))
		return false;
	sample->has_cgroup = true;
	return cursor_skip(cursor, fields_bytes(type & PERF_SAMPLE_PHYS_ADDR)) &&
	       cursor_take(cursor, &sample->cgroup, sizeof(sample->cgroup));
}

bool record_sample_decode_attr(const struct perf_event_header *record, size_t bytes, const struct perf_event_attr *attr,
                               struct record_sample *sample)
{
	const uint64_t sample_type = attr->sample_type;

	if (bytes < sizeof(*record) || record->type != PERF_RECORD_SAMPLE)
		return false;

	struct record_sample out = {.misc = record->misc};
	struct cursor cursor = cursor_body(record, bytes);
	uint64_t unused;
	uint32_t reserved;

	if (!take_u64(&cursor, sample_type & PERF_SAMPLE_IDENTIFIER, &out.id) ||
	    !take_u64(&cursor, sample_type & PERF_SAMPLE_IP, &out.ip) ||
	    !take_u32_pair(&cursor, sample_type & PERF_SAMPLE_TID, &out.pid, &out.tid) ||
	    !take_u64(&cursor, sample_type & PERF_SAMPLE_TIME, &out.time_ns) ||
	    !take_u64(&cursor, sample_type & PERF_SAMPLE_ADDR, &unused) ||
	    !take_u64(&cursor, sample_type & PERF_SAMPLE_ID, &out.id) ||
	    !take_u64(&cursor, sample_type & PERF_SAMPLE_STREAM_ID, &unused) ||
	    !take_u32_pair(&cursor, sample_type & PERF_SAMPLE_CPU, &out.cpu, &reserved) ||
	    !take_u64(&cursor, sample_type & PERF_SAMPLE_PERIOD, &out.period))
		return false;
	if ((sample_type & PERF_SAMPLE_READ) && !skip_read(&cursor, attr->read_format))
		return false;
	if ((sample_type & PERF_SAMPLE_CALLCHAIN) && !take_chain(&cursor, &out))
		return false;
	if ((sample_type & PERF_SAMPLE_RAW) && !take_raw(&cursor, &out))
		return false;
	if ((sample_type & PERF_SAMPLE_CGROUP) && !take_cgroup(&cursor, attr, &out))
		return false;
	*sample = out;
	return true;
}

bool record_lost_decode(const struct perf_event_header *record, size_t bytes, struct record_lost *lost)
{
	struct lost_wire body;

	if (bytes < sizeof(*record) || record->type != PERF_RECORD_LOST)
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!cursor_take(&cursor, &body, sizeof(body)))
		return false;
	*lost = (struct record_lost){body.id, body.lost};
	return true;
}

bool record_lost_samples_decode(const struct perf_event_header *record, size_t bytes, uint64_t *lost)
{
	if (bytes < sizeof(*record) || record->type != PERF_RECORD_LOST_SAMPLES ||
	    (record->misc & MISC_LOST_SAMPLES_BPF) != 0)
		return false;
	struct cursor cursor = cursor_body(record, bytes);

	return cursor_take(&cursor, lost, sizeof(*lost));
}

void record_losses_take(struct record_losses *losses, const struct perf_event_header *record, size_t bytes)
{
	struct record_lost lost;
	uint64_t samples;

	if (record_lost_decode(record, bytes, &lost)) {
		losses->records += lost.lost;
	} else if (record_lost_samples_decode(record, bytes, &samples)) {
		losses->samples += samples;
		losses->has_samples = true;
	}
}

uint64_t record_losses_samples(const struct record_losses *losses)
{
	return losses->has_samples ? losses->samples : losses->records;
}

uint64_t record_losses_others(const struct record_losses *losses)
{
	const uint64_t samples = record_losses_samples(losses);

	return losses->records > samples ? losses->records - samples : 0;
}

bool record_throttle_decode(const struct perf_event_header *record, size_t bytes, struct record_throttle *throttle)
{
	struct throttle_wire body;

	if (bytes < sizeof(*record) || (record->type != PERF_RECORD_THROTTLE && record->type != PERF_RECORD_UNTHROTTLE))
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!cursor_take(&cursor, &body, sizeof(body)))
		return false;
	*throttle = (struct record_throttle){record->type == PERF_RECORD_UNTHROTTLE, body.time_ns, body.id};
	return true;
}

bool record_comm_decode(const struct perf_event_header *record, size_t bytes, struct record_comm *comm)
{
	struct comm_wire body;
	const char *text;

	if (bytes < sizeof(*record) || record->type != PERF_RECORD_COMM)
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!cursor_take(&cursor, &body, sizeof(body)) || !take_text(&cursor, &text))
		return false;
	*comm = (struct record_comm){body.pid, body.tid, (record->misc & PERF_RECORD_MISC_COMM_EXEC) != 0,
	                             untrusted(text)};
	return true;
}

bool record_task_decode(const struct perf_event_header *record, size_t bytes, struct record_task *task)
{
	struct task_wire body;

	if (bytes < sizeof(*record) || (record->type != PERF_RECORD_FORK && record->type != PERF_RECORD_EXIT))
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!cursor_take(&cursor, &body, sizeof(body)))
		return false;
	*task = (struct record_task){record->type, body.pid, body.parent_pid, body.tid, body.parent_tid, body.time_ns};
	return true;
}

bool record_switch_decode(const struct perf_event_header *record, size_t bytes, struct record_switch *change)
{
	struct switch_wire body;

	if (bytes < sizeof(*record) || record->type != PERF_RECORD_SWITCH_CPU_WIDE)
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!cursor_take(&cursor, &body, sizeof(body)))
		return false;
	*change = (struct record_switch){(record->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0, body.pid, body.tid};
	return true;
}

bool record_read_decode(const struct perf_event_header *record, size_t bytes, uint64_t read_format,
                        struct record_read *read)
{
	struct record_read out = {0};

	if (bytes < sizeof(*record) || record->type != PERF_RECORD_READ || (read_format & PERF_FORMAT_GROUP))
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!take_u32_pair(&cursor, 1, &out.pid, &out.tid) || !take_u64(&cursor, 1, &out.value) ||
	    !take_u64(&cursor, read_format & PERF_FORMAT_TOTAL_TIME_ENABLED, &out.enabled_ns) ||
	    !take_u64(&cursor, read_format & PERF_FORMAT_TOTAL_TIME_RUNNING, &out.running_ns))
		return false;
	*read = out;
	return true;
}

bool record_mmap_decode(const struct perf_event_header *record, size_t bytes, struct record_mmap *mmap)
{
	struct mmap2_wire body;
	struct record_mmap out = {0};

	if (bytes < sizeof(*record) || (record->type != PERF_RECORD_MMAP && record->type != PERF_RECORD_MMAP2))
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	const struct cursor start = cursor;
	const bool is_mmap2 = record->type == PERF_RECORD_MMAP2;
	if (!cursor_take(&cursor, &body, is_mmap2 ? sizeof(body) : sizeof(body.mmap)) ||
	    !take_text(&cursor, &out.file_name.raw))
		return false;
	if (is_mmap2 && (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && body.build_id_bytes) {
		if (body.build_id_bytes > sizeof(body.build_id))
			return false;
		out.build_id = start.at + offsetof(struct mmap2_wire, build_id);
		out.build_id_bytes = body.build_id_bytes;
	}
	out.mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	out.pid = body.mmap.pid;
	out.tid = body.mmap.tid;
	out.start = body.mmap.start;
	out.bytes = body.mmap.bytes;
	out.page_offset = body.mmap.page_offset;
	*mmap = out;
	return true;
}

bool record_cgroup_decode(const struct perf_event_header *record, size_t bytes, struct record_cgroup *cgroup)
{
	struct cgroup_wire body;
	const char *path;

	if (bytes < sizeof(*record) || record->type != PERF_RECORD_CGROUP)
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!cursor_take(&cursor, &body, sizeof(body)) || !take_text(&cursor, &path))
		return false;
	*cgroup = (struct record_cgroup){body.id, untrusted(path)};
	return true;
}

bool record_event_name_decode(const struct perf_event_header *record, size_t bytes, struct record_event_name *event)
{
	struct event_update_wire body;
	const char *name;

	if (bytes < sizeof(*record) || record->type != RECORD_EVENT_UPDATE)
		return false;
	struct cursor cursor = cursor_body(record, bytes);
	if (!cursor_take(&cursor, &body, sizeof(body)) || body.kind != EVENT_UPDATE_NAME || !take_text(&cursor, &name))
		return false;
	*event = (struct record_event_name){body.event_id, untrusted(name)};
	return true;
}

bool record_id_decode(const struct perf_event_header *record, size_t bytes, uint64_t sample_type, struct record_id *id)
{
	const uint64_t fields = sample_type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
	                                       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
	const size_t id_bytes = fields_bytes(fields);
	struct record_id out = {0};
	uint64_t unused;
	uint32_t reserved;

	if (bytes < sizeof(*record) + id_bytes || record->type == PERF_RECORD_SAMPLE ||
	    record->type >= RECORD_USER_TYPE_START)
		return false;
	struct cursor cursor = {(const uint8_t *)record + bytes - id_bytes, id_bytes};
	if (!take_u32_pair(&cursor, fields & PERF_SAMPLE_TID, &out.pid, &out.tid) ||
	    !take_u64(&cursor, fields & PERF_SAMPLE_TIME, &out.time_ns) ||
	    !take_u64(&cursor, fields & PERF_SAMPLE_ID, &out.id) ||
	    !take_u64(&cursor, fields & PERF_SAMPLE_STREAM_ID, &unused) ||
	    !take_u32_pair(&cursor, fields & PERF_SAMPLE_CPU, &out.cpu, &reserved) ||
	    !take_u64(&cursor, fields & PERF_SAMPLE_IDENTIFIER, &out.id))
		return false;
	*id = out;
	return true;
}

struct vprof_wait record_sample_wait(const struct record_sample *sample)
{
	struct vprof_wait wait = {.waker = VPROF_WAKER_UNKNOWN};
	const size_t bytes = sample->raw_bytes < sizeof(wait) ? sample->raw_bytes : sizeof(wait);

	/* That of another event is something else. */
	if ((sample->misc & VPROF_TASK_STATE_MASK) == 0 || bytes == 0)
		return wait;
	memcpy(&wait, sample->raw, bytes);
	if (wait.waker >= VPROF_WAKER_COUNT)
		wait.waker = VPROF_WAKER_UNKNOWN;
	if (wait.lock_kind >= VPROF_LOCK_COUNT)
		wait.lock_kind = VPROF_LOCK_UNKNOWN;
	return wait;
}

bool record_time(const struct perf_event_header *record, size_t bytes, uint64_t sample_type, uint64_t *time_ns)
{
	const uint64_t ahead = sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID);
	struct record_id id;

	if (!(sample_type & PERF_SAMPLE_TIME) || bytes < sizeof(*record))
		return false;
	if (record->type == PERF_RECORD_SAMPLE) {
		struct cursor cursor = cursor_body(record, bytes);

		return cursor_skip(&cursor, fields_bytes(ahead)) && cursor_take(&cursor, time_ns, sizeof(*time_ns));
	}
	if (!record_id_decode(record, bytes, sample_type, &id))
		return false;
	*time_ns = id.time_ns;
	return true;
}

const struct perf_event_header *record_check(const void *at, size_t bytes)
{
	const struct perf_event_header *record = at;

	if (bytes < sizeof(*record) || record->size < sizeof(*record) || record->size % 8 || record->size > bytes)
		return NULL;
	return record;
}
