// SPDX-License-Identifier: BSD-2-Clause
/*
 * The BPF program's record in a perf ring: what it copied of the guest's memory stays within the record, and a call
 * chain is made of that alone.
 */
#include <stdlib.h>
#include <string.h>
#include <vprof/recording.h>

#include "attach/bpf_sample.h"
#include "attach/host_chain.h"
#include "fuzz_target.h"

#define SAMPLE_TYPE (VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

/* The guest has gone on: its memory must not be read. */
static bool no_memory(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	(void)guest, (void)from, (void)to, (void)bytes;
	abort();
}

static void check_spans(const struct snapshot *snapshot, const struct record_sample *record)
{
	const uint8_t *start = record->raw;

	for (size_t i = 0; i < snapshot->n; i++) {
		const struct snapshot_span *span = &snapshot->spans[i];
		size_t offset = (size_t)((const uint8_t *)span->data - start);

		if (offset > record->raw_bytes || span->bytes > record->raw_bytes - offset)
			abort();
	}
}

static void check_chain(const struct counter_sample *sample)
{
	static const struct guest_ops ops = {.memory_read = no_memory};
	static const struct unwind_config config = {.depth = UNWIND_DEPTH_MAX, .user = true};
	struct guest guest = {.ops = &ops};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	if (unwind(&config, &guest, &sample->regs, sample->snapshot, chain, &end) > UNWIND_CHAIN_MAX ||
	    end >= UNWIND_ENDS)
		abort();
}

/* Without a process to look for callers in, no address is taken for a caller. */
static void check_host_chain(const struct record_sample *record, struct counter_sample *sample)
{
	struct host_chain *chain = host_chain_new(-1);

	host_chain_take(chain, record, sample);
	if (sample->n_host_chain > record->n_chain || (sample->in_guest && sample->host_ip != 0))
		abort();
	host_chain_free(chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t aligned[8192];
	const struct perf_event_header *header = (const void *)aligned;
	struct counter_sample sample = {0};
	struct snapshot snapshot;
	struct record_sample record;

	if (size < sizeof(*header) || size > sizeof(aligned))
		return 0;
	memcpy(aligned, data, size);
	if (!record_sample_decode(header, size, SAMPLE_TYPE, &record) ||
	    !bpf_sample_decode(&record, size & 1, &sample, &snapshot))
		return 0;
	check_spans(&snapshot, &record);
	check_chain(&sample);
	check_host_chain(&record, &sample);
	return 0;
}
