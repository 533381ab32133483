// SPDX-License-Identifier: BSD-2-Clause
/*
 * Input: sample_type, then read_format (1 byte), branch_sample_type (3), sample_regs_user (2), sample_regs_intr (2),
 * then a record.
 */
#include <glib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/record/record.h"

static volatile uint64_t sink; /* so that what is decoded is read */

static void sample_read(const struct perf_event_header *record, size_t n, const struct perf_event_attr *attr)
{
	const uint64_t sample_type = attr->sample_type;
	struct record_sample sample;

	if (!record_sample_decode_attr(record, n, attr, &sample))
		return;
	g_assert(sample.has_cgroup == !!(sample_type & PERF_SAMPLE_CGROUP));
	g_assert(sample.n_chain == 0 || sample_type & PERF_SAMPLE_CALLCHAIN);
	for (uint32_t i = 0; i < sample.n_chain; i++)
		sink += sample.chain[i];
	if ((sample_type & ~(uint64_t)(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP)) != VPROF_SAMPLE_TYPE)
		return;

	/* What was decoded encodes to the same bytes; only reserved fields may differ. */
	static uint64_t again[RECORD_BYTES_MAX / 8];
	struct record_sample second;
	size_t again_n = record_sample_encode(&sample, sample_type & PERF_SAMPLE_CALLCHAIN, again, sizeof(again));
	g_assert(again_n && again_n <= n);
	g_assert(record_sample_decode((struct perf_event_header *)again, again_n, sample_type, &second));
	g_assert(second.ip == sample.ip && second.period == sample.period && second.n_chain == sample.n_chain);
	g_assert(second.cgroup == sample.cgroup);
}

static void text_read(struct untrusted_text text)
{
	sink += strlen(text.raw);
}

static void others_read(const struct perf_event_header *record, size_t n, const struct perf_event_attr *attr)
{
	const uint64_t sample_type = attr->sample_type;
	uint64_t time_ns;
	struct record_lost lost;
	struct record_throttle throttle;
	struct record_read read;
	struct record_comm comm;
	struct record_cgroup cgroup;
	struct record_event_name event;
	struct record_mmap mmap;
	struct record_id record_id;

	if (record_lost_decode(record, n, &lost))
		sink += lost.lost;
	if (record_throttle_decode(record, n, &throttle))
		sink += throttle.id;
	if (record_read_decode(record, n, attr->read_format, &read))
		sink += read.value + read.running_ns;
	record_task_decode(record, n, &(struct record_task){0});
	if (record_comm_decode(record, n, &comm))
		text_read(comm.comm);
	if (record_cgroup_decode(record, n, &cgroup))
		text_read(cgroup.path);
	if (record_event_name_decode(record, n, &event))
		text_read(event.name);
	if (record_mmap_decode(record, n, &mmap)) {
		text_read(mmap.file_name);
		for (size_t i = 0; i < mmap.build_id_bytes; i++)
			sink += mmap.build_id[i];
	}
	if (record_id_decode(record, n, sample_type, &record_id))
		sink += record_id.id;
	if (record_time(record, n, sample_type, &time_ns))
		sink += time_ns;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct perf_event_attr attr = {0};
	uint64_t formats;
	const size_t head_bytes = sizeof(attr.sample_type) + sizeof(formats);

	if (n < head_bytes)
		return 0;
	memcpy(&attr.sample_type, bytes, sizeof(attr.sample_type));
	memcpy(&formats, bytes + sizeof(attr.sample_type), sizeof(formats));
	attr.read_format = formats & 0xff;
	attr.branch_sample_type = formats >> 8 & 0xffffff;
	attr.sample_regs_user = formats >> 32 & 0xffff;
	attr.sample_regs_intr = formats >> 48;
	g_autofree void *aligned = g_memdup2(bytes + head_bytes, n - head_bytes);
	const struct perf_event_header *record = aligned ? record_check(aligned, n - head_bytes) : NULL;
	if (record) {
		sample_read(record, record->size, &attr);
		others_read(record, record->size, &attr);
	}
	return 0;
}
