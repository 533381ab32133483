// SPDX-License-Identifier: BSD-2-Clause
#include "attach/bpf_sample.h"

#include <string.h>

#include "attach/bpf_sample_priv.h"
#include "attach/vcpu_rings.h"

_Static_assert(GUEST_SAMPLE_VCPUS_MAX == GUEST_VCPUS_MAX, "bpf/guest_sample.h");
_Static_assert(GUEST_SAMPLE_FRAMES_MAX == UNWIND_DEPTH_MAX, "bpf/guest_sample.h");

static bool spans_decode(const uint8_t *at, size_t bytes, struct snapshot *snapshot)
{
	struct guest_sample_span span;

	snapshot->n = 0;
	while (bytes > 0) {
		if (bytes < sizeof(span))
			return false;
		memcpy(&span, at, sizeof(span));
		at += sizeof(span);
		bytes -= sizeof(span);
		if (span.bytes > bytes || !snapshot_add(snapshot, (gva_t){span.gva}, at, span.bytes))
			return false;
		at += span.bytes;
		bytes -= span.bytes;
	}
	return true;
}

bool bpf_sample_decode(const struct record_sample *record, bool has_kernel, struct counter_sample *sample,
                       struct snapshot *snapshot)
{
	struct guest_sample raw;

	/* perf pads raw data to a multiple of 8, with its size before it. */
	if (!record->raw || record->raw_bytes < sizeof(raw))
		return false;
	memcpy(&raw, record->raw, sizeof(raw));
	if (raw.memory_bytes > record->raw_bytes - sizeof(raw) ||
	    !spans_decode((const uint8_t *)record->raw + sizeof(raw), raw.memory_bytes, snapshot))
		return false;
	sample->overflow = (struct counter_overflow){.event = raw.event, .period = raw.period};
	sample->time_ns = record->time_ns;
	bpf_sample_registers(record, &raw, has_kernel, sample);
	sample->snapshot = snapshot;
	sample->user_stack = raw.flags & GUEST_SAMPLE_USER_STACK;
	sample->task = raw.task;
	return true;
}
