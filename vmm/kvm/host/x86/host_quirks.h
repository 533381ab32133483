// SPDX-License-Identifier: BSD-2-Clause
/* The quirks that a guest needs on a host which does not behave as the hardware does. */
#ifndef VPROF_KVM_HOST_X86_HOST_QUIRKS_H
#define VPROF_KVM_HOST_X86_HOST_QUIRKS_H

#include "guest/guest_debug.h"
#include "kvm/host/host.h"
#include "kvm/host/memory.h"

/* A vCPU as the quirks see it, on its thread. */
struct host_vcpu {
	unsigned index;
	int fd;
	int schedstat_fd; /* of its thread: thread_waited_ns */
	struct kvm_run *run;
};

/*
 * What differs on one kind of host; a host without a table has no quirks. `state` belongs to the quirks of one VM, and
 * vm_init makes it.
 */
struct host_quirks {
	/* One sentence for each quirk, for people; NULL-terminated. */
	const char *const *sentences;
	/* Options for the kernel command line, NAME=VALUE or NAME; Linux guests only; NULL-terminated. */
	const char *const *options;
	/* RAM that the guest must not use, below 640 KiB. */
	gpa_t reserved;
	uint64_t reserved_bytes;
	/* MSRs with reads or writes that come to `exit`. */
	const struct guest_msr_range *msrs;
	size_t msrs_n;
	/* Once, before the first vCPU. `memory` outlives the state. */
	void *(*vm_init)(int vm_fd, const struct memory *memory, GError **error);
	/* Edits what a guest may see; *cpuid has the host's entries after our own edits. */
	void (*cpuid)(struct kvm_cpuid2 *cpuid);
	/* The vCPU's thread: handles an exit that the host causes. False: it is an ordinary exit. */
	bool (*exit)(void *state, const struct host_vcpu *vcpu);
	/* Whether an instruction pointer lies in a page of the quirks. */
	bool (*owns)(uint64_t rip);
};

/* The table for this kind of host; NULL when there are none. */
const struct host_quirks *host_quirks_find(enum host_kind kind);

/* host_pvm.c: hosts with a KVM that runs CPL 3 natively and emulates CPL 0. */
extern const struct host_quirks host_quirks_pvm;

#endif
