// SPDX-License-Identifier: BSD-2-Clause
/* The record of kvm:kvm_exit on x86-64, as perf has it: for exit_times.bpf.c and exit_events.c. */
#ifndef VPROF_EXITS_BPF_X86_EXIT_RECORD_H
#define VPROF_EXITS_BPF_X86_EXIT_RECORD_H

#include <linux/types.h>

struct kvm_exit_record {
	__u64 common;
	__u32 exit_reason;
	__u64 guest_rip;
	__u32 isa;
};

/* The members that are read: name, offset, bytes. */
#define EXIT_RECORD_FIELDS     \
	{"exit_reason", 8, 4}, \
	{                      \
		"isa", 24, 4   \
	}
/* KVM has begun to work for the guest; the guest has used a port. */
#define EXIT_POINT_RUN_NAME "kvm/kvm_fpu"
#define EXIT_POINT_PORT_NAME "kvm/kvm_pio"

static inline __u32 exit_record_isa(const struct kvm_exit_record *record)
{
	return record->isa;
}

static inline __u32 exit_record_reason(const struct kvm_exit_record *record)
{
	return record->exit_reason;
}

#endif
