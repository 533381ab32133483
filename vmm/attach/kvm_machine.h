// SPDX-License-Identifier: BSD-2-Clause
/* A virtual machine of another process, as KVM has it: what the records of bpf/kvm_view.h say. */
#ifndef VPROF_ATTACH_KVM_MACHINE_H
#define VPROF_ATTACH_KVM_MACHINE_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "guest/guest.h"

/* Guests have some 5 to 50; of one that has more (gVisor), what lies in the others cannot be read. */
#define KVM_MACHINE_RANGES_MAX 512u

#define KVM_MACHINE_ERROR kvm_machine_error_quark()
GQuark kvm_machine_error_quark(void);
enum kvm_machine_error {
	KVM_MACHINE_ERROR_NONE,    /* the process has no vCPU (any more) */
	KVM_MACHINE_ERROR_CHANGED, /* its memory changed while it was read: read again */
	KVM_MACHINE_ERROR_LIMIT,   /* more vCPUs than are followed */
	KVM_MACHINE_ERROR_RECORD,  /* the records make no sense */
};

/* Guest memory that lies in one piece in the process. */
struct kvm_machine_range {
	uint64_t gpa, bytes, hva;
};

struct kvm_machine_vcpu {
	unsigned id;  /* KVM's: on x86-64 the APIC id */
	pid_t thread; /* 0: it never ran */
	bool in_kvm;  /* a system call held it */
	bool long_mode;
	bool tables_current; /* else they may be older ones, or 0 */
	struct guest_tables tables;
	uint64_t vectors; /* of exceptions: where the processor's table is; 0: not known */
};

/* All zero: none. */
struct kvm_machine {
	unsigned n_machines; /* of the process; this is the one with most vCPUs */
	unsigned ids_max;    /* ids of vCPUs that are plugged in later are below; 0: not known */
	unsigned n_vcpus;
	struct kvm_machine_vcpu vcpus[GUEST_VCPUS_MAX]; /* by ascending id */
	size_t n_ranges;
	struct kvm_machine_range ranges[KVM_MACHINE_RANGES_MAX]; /* by ascending gpa, not overlapping */
	uint64_t memory_bytes;    /* of the ranges, those that the guest cannot write (ROM) left out */
	uint64_t logged_bytes;    /* of them, those of which KVM logs what is written, as for a migration */
	bool halts;               /* vCPUs that are halted are in KVM; else they may have left it */
	const char *confidential; /* "SEV", "TDX"; NULL: it is not */
};

/* *machine is undefined on error. */
bool kvm_machine_decode(const void *records, size_t bytes, struct kvm_machine *machine, GError **error);

/*
 * The statistics of a vCPU of that machine: struct kvm_vcpu_stat of the kernel that runs, *n bytes, not aligned, in
 * `records`. NULL: they have none.
 */
const void *kvm_machine_statistics(const void *records, size_t bytes, unsigned id, size_t *n);

#endif
