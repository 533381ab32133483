// SPDX-License-Identifier: BSD-2-Clause
#include "stream/announcer.h"

#include "guest/os.h"
#include "lib/record/clock.h"

#define NS_PER_S 1000000000

/* The longest text, and what a PERF_RECORD_MMAP2 has beside it: header, fields and sample_id have 104. */
#define TEXT_BYTES_MAX MAX(OS_FILE_NAME_BYTES, OS_GROUP_PATH_BYTES)
#define RECORD_BYTES (128u + TEXT_BYTES_MAX)

/* ---- what announcements may cost ---- */

static int64_t bytes_per_s(const struct announcer *announcer)
{
	return (int64_t)MAX(ring_data_bytes(announcer->ring) / ANNOUNCE_SHARE, ANNOUNCE_BYTES_MIN);
}

/* Half of the ring is for samples, however much is saved up. */
static void budget_grow(struct announcer *announcer, uint64_t time_ns)
{
	struct announce_budget *budget = &announcer->budget;
	const int64_t per_s = bytes_per_s(announcer), longest_ns = (int64_t)ANNOUNCE_SAVED_S * NS_PER_S;
	const int64_t bytes_max = MIN((int64_t)ANNOUNCE_SAVED_S * per_s, (int64_t)ring_data_bytes(announcer->ring) / 2);
	int64_t passed_ns = longest_ns;

	if (budget->since_ns != 0)
		passed_ns = (int64_t)MIN(time_ns - MIN(time_ns, budget->since_ns), (uint64_t)longest_ns);
	budget->since_ns = MAX(budget->since_ns, time_ns);
	budget->bytes = MIN(budget->bytes + per_s * passed_ns / NS_PER_S, bytes_max);
	budget->ns = MIN(budget->ns + passed_ns / ANNOUNCE_SHARE, NS_PER_S / ANNOUNCE_SHARE);
}

size_t announcer_room(struct announcer *announcer, enum announce_kind kind, uint64_t time_ns)
{
	if (!announcer->ring)
		return SIZE_MAX;
	budget_grow(announcer, time_ns);

	const int64_t unread = (int64_t)ring_unread(announcer->ring);
	const int64_t room = MIN(announcer->budget.bytes, (int64_t)ring_data_bytes(announcer->ring) / 2 - unread);

	if (room > 0 && announcer->budget.ns > 0)
		return (size_t)room;
	announcer_count_later(announcer, kind);
	return 0;
}

void announcer_count_later(struct announcer *announcer, enum announce_kind kind)
{
	announcer->later[kind]++;
}

uint64_t announcer_begin(const struct announcer *announcer)
{
	return announcer->ring ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
}

void announcer_end(struct announcer *announcer, uint64_t begin_ns)
{
	if (announcer->ring)
		announcer->budget.ns -= (int64_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
}

/* ---- records ---- */

/* One that finds no room is not lost: it comes with a later sample. */
static bool announce(struct announcer *announcer, const void *record, size_t bytes, const struct record_id *id)
{
	if (ring_has_room(announcer->ring, bytes) && ring_write(announcer->ring, record, bytes, id))
		return true;
	announcer->dropped++;
	return false;
}

static bool announce_paid(struct announcer *announcer, const void *record, size_t bytes, const struct record_id *id)
{
	if (!announce(announcer, record, bytes, id))
		return false;
	announcer->budget.bytes -= (int64_t)bytes;
	return true;
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
	return announce_paid(announcer, record, record_mmap_encode(mmap, id, record, sizeof(record)), id);
}

bool announce_cgroup(struct announcer *announcer, const struct record_cgroup *cgroup, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	return announce_paid(announcer, record, record_cgroup_encode(cgroup, id, record, sizeof(record)), id);
}

bool announce_end(struct announcer *announcer, const struct record_task *task, const struct record_id *id)
{
	uint64_t record[RECORD_BYTES / sizeof(uint64_t)];

	return ring_write(announcer->ring, record, record_task_encode(task, id, record, sizeof(record)), id);
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
