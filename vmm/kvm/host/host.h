// SPDX-License-Identifier: BSD-2-Clause
/* The host's KVM: its kind and its capabilities. host/x86 and host/arm64 have what depends on the processor. */
#ifndef VPROF_KVM_HOST_HOST_H
#define VPROF_KVM_HOST_HOST_H

#include <glib.h>
#include <linux/kvm.h>
#include <stdbool.h>

#define HOST_ERROR host_error_quark()
GQuark host_error_quark(void);
enum host_error {
	HOST_ERROR_MISSING,    /* no /dev/kvm; the message says what to load */
	HOST_ERROR_PERMISSION, /* /dev/kvm may not be opened; the message says how to get in */
	HOST_ERROR_CAPABILITY, /* KVM lacks an extension; the message names it */
	HOST_ERROR_SYSTEM,     /* another system call failed */
};

enum host_kind { HOST_UNKNOWN, HOST_VMX, HOST_SVM, HOST_PVM, HOST_ARM64 };

/* The kind of KVM behind /dev/kvm. */
enum host_kind host_kind(void);
/* "vmx", "svm", "pvm", "arm64", "unknown". */
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
extern const char host_linux_wanted[];                   /* the first version that has the required ones */
/* What to do where there is no /dev/kvm, a clause. */
extern const char host_kvm_missing[];

bool host_has(int kvm_fd, const struct host_capability *capability);

/* NULL when this host's KVM can give a guest a PMU (its vPMU), else the reason; static text. */
const char *host_pmu_unavailable(int kvm_fd);

/* What differs on this host from what the hardware does, for people; NULL-terminated; NULL: nothing. */
const char *const *host_quirk_sentences(void);

/* Sets HOST_ERROR_SYSTEM, "cannot `what`" and what errno says; returns false. */
bool host_fail(GError **error, const char *what);

/* Opens /dev/kvm and checks its version and the required capabilities. -1 with HOST_ERROR. */
int host_open(GError **error);

#endif
