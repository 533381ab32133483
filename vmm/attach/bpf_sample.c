// SPDX-License-Identifier: BSD-2-Clause
#include "attach/bpf_sample.h"

#include <string.h>

#include "attach/bpf/guest_sample.h"
#include "attach/vcpu_rings.h"

_Static_assert(sizeof(struct guest_sample) == 184, "bpf/guest_sample.h: no holes");
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

static struct guest_regs registers(const struct guest_sample *raw)
{
	const unsigned long long *regs = raw->regs;

	return (struct guest_regs){
		.rip = regs[GUEST_SAMPLE_RIP],
		.rsp = raw->flags & GUEST_SAMPLE_HAS_RSP ? regs[GUEST_SAMPLE_RSP] : 0,
		.rbp = regs[GUEST_SAMPLE_RBP],
		.rax = regs[GUEST_SAMPLE_RAX],
		.rdx = regs[GUEST_SAMPLE_RDX],
		.rdi = regs[GUEST_SAMPLE_RDI],
		.r10 = regs[GUEST_SAMPLE_R10],
		.r13 = regs[GUEST_SAMPLE_R13],
		.cr3 = raw->cr3,
		.gs_base = raw->gs_base,
		.cpl = (uint8_t)raw->cpl,
		.la57 = raw->flags & GUEST_SAMPLE_LA57,
		/* Also of a sample outside the guest: it stands where it left. */
		.valid = raw->flags & GUEST_SAMPLE_HAS_RIP,
	};
}

/* Where the guest is, by perf, which asks KVM; or by KVM's own registers where KVM is what runs the guest. */
static bool place(const struct record_sample *record, const struct guest_sample *raw, struct guest_regs *regs)
{
	uint8_t cpl;

	if (vcpu_rings_guest_mode(record->misc, &cpl)) {
		regs->rip = record->ip;
		regs->cpl = cpl;
		regs->valid = true;
		return true;
	}
	return raw->flags & GUEST_SAMPLE_EMULATED &&
	       (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
}

bool bpf_sample_decode(const struct record_sample *record, struct counter_sample *sample, struct snapshot *snapshot)
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
	sample->regs = registers(&raw);
	sample->in_guest = place(record, &raw, &sample->regs);
	sample->snapshot = snapshot;
	sample->task = raw.task;
	return true;
}
