// SPDX-License-Identifier: BSD-2-Clause
/* The record of kvm:kvm_exit on arm64, as perf has it: for exit_times.bpf.c and exit_events.c. */
#ifndef VPROF_EXITS_BPF_ARM64_EXIT_RECORD_H
#define VPROF_EXITS_BPF_ARM64_EXIT_RECORD_H

#include <linux/types.h>

#include "exit_times.h"

struct kvm_exit_record {
	__u64 common;
	__u32 ret; /* ARM_EXCEPTION_* (arch/arm64/include/asm/kvm_asm.h), with a bit for a pending SError */
	__u32 esr_ec;
	__u64 vcpu_pc;
};

/* The members that are read: name, offset, bytes. */
#define EXIT_RECORD_FIELDS      \
	{"ret", 8, 4},          \
	{                       \
		"esr_ec", 12, 4 \
	}
/* No trace point tells that KVM has begun to work for the guest, and there are no ports. */
#define EXIT_POINT_RUN_NAME NULL
#define EXIT_POINT_PORT_NAME NULL

#define EXIT_CODE 0x7fffffffu
#define EXIT_CODE_TRAP 2u

static inline __u32 exit_record_isa(const struct kvm_exit_record *record __attribute__((unused)))
{
	return EXIT_TIMES_ISA_ARM64;
}

/* A trap's is its exception class (ESR_EL2.EC). */
static inline __u32 exit_record_reason(const struct kvm_exit_record *record)
{
	const __u32 code = record->ret & EXIT_CODE;

	return code == EXIT_CODE_TRAP ? record->esr_ec : EXIT_TIMES_NO_TRAP | code;
}

#endif
