// SPDX-License-Identifier: BSD-2-Clause
/*
 * The host's KVM: its kind, its capabilities, and the quirks that a guest needs on a host which does not behave as the
 * hardware does.
 */
#ifndef VPROF_KVM_HOST_HOST_H
#define VPROF_KVM_HOST_HOST_H

#include <glib.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest/guest_debug.h"
#include "kvm/host/memory.h"

#define HOST_ERROR host_error_quark()
GQuark host_error_quark(void);
enum host_error {
	HOST_ERROR_MISSING,    /* no /dev/kvm; the message says what to load */
	HOST_ERROR_PERMISSION, /* /dev/kvm may not be opened; the message says how to get in */
	HOST_ERROR_CAPABILITY, /* KVM lacks an extension; the message names it */
	HOST_ERROR_SYSTEM,     /* another system call failed */
};

enum host_kind { HOST_UNKNOWN, HOST_VMX, HOST_SVM, HOST_PVM };

/* The kind of KVM behind /dev/kvm. */
enum host_kind host_kind(void);
/* "vmx", "svm", "pvm", "unknown". */
const char *host_kind_name(enum host_kind kind);

/* A KVM extension we use. */
struct host_capability {
	const char *name; /* "KVM_CAP_SYNC_REGS" */
	int number;
	int bits;      /* that KVM_CHECK_EXTENSION must return, where that is a mask; 0: any value but 0 */
	bool required; /* else it is used where present */
	const char *purpose;
};
extern const struct host_capability host_capabilities[]; /* ends with a NULL name */

bool host_has(int kvm_fd, const struct host_capability *capability);

/* NULL when this host's KVM can give a guest a PMU (its vPMU), else the reason; static text. */
const char *host_pmu_unavailable(int kvm_fd);

/* Opens /dev/kvm and checks its version and the required capabilities. -1 with HOST_ERROR. */
int host_open(GError **error);

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
