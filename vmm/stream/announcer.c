// SPDX-License-Identifier: BSD-2-Clause
#include "stream/announcer.h"

#include "linux/cgroup.h"
#include "linux/vma.h"

/* The longest text, and what a PERF_RECORD_MMAP2 has beside it: header, fields and sample_id have 104. */
#define TEXT_BYTES_MAX MAX(FILE_NAME_BYTES, CGROUP_PATH_BYTES)
#define RECORD_BYTES (128u + TEXT_BYTES_MAX)

static bool announce(struct announcer *announcer, const void *record, size_t bytes, const struct record_id *id)
{
	if (ring_write(announcer->ring, record, bytes, id))
		return true;
	announcer->dropped++;
	return false;
}

bool announce_task(struct announcer *announcer, const struct record_task *task, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	return announce(announcer, record, record_task_encode(task, id, record, sizeof(record)), id);
}

bool announce_comm(struct announcer *announcer, const struct record_comm *comm, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	return announce(announcer, record, record_comm_encode(comm, id, record, sizeof(record)), id);
}

bool announce_mmap(struct announcer *announcer, const struct record_mmap *mmap, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	if (announcer->mapped)
		return announcer->mapped(announcer, mmap);
	return announce(announcer, record, record_mmap_encode(mmap, id, record, sizeof(record)), id);
}

bool announce_cgroup(struct announcer *announcer, const struct record_cgroup *cgroup, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	return announce(announcer, record, record_cgroup_encode(cgroup, id, record, sizeof(record)), id);
}

bool announce_read(struct announcer *announcer, const struct record_read *read, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	return ring_write(announcer->ring, record, record_read_encode(read, id, record, sizeof(record)), id);
}

bool announce_switch(struct announcer *announcer, const struct record_switch *change, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	return ring_write(announcer->ring, record, record_switch_encode(change, id, record, sizeof(record)), id);
}
