// SPDX-License-Identifier: BSD-2-Clause
/* Which accesses to MSRs exit to the VMM. KVM has one filter for each VM: this is the union of what its owners want. */
#ifndef VPROF_KVM_HOST_X86_MSR_FILTER_H
#define VPROF_KVM_HOST_X86_MSR_FILTER_H

#include <glib.h>
#include <stdbool.h>

#include "guest/guest_debug.h"

/* An MSR of several owners exits once, and the first that knows it handles the exit. */
enum msr_owner { MSR_OWNER_QUIRKS, MSR_OWNER_PMU, MSR_OWNER_PROBES, MSR_OWNERS };

/* Main thread, or before there are others. All zero at first, but for the descriptor. */
struct msr_filter {
	int vm_fd;
	bool enabled; /* KVM has been asked for exits */
	struct {
		struct guest_msr_range ranges[GUEST_MSR_RANGES_MAX];
		size_t n;
	} owners[MSR_OWNERS];
};

/*
 * Makes these ranges exit for `owner`, in place of its previous ones. vCPUs may run. On an error nothing changes.
 * Errors: GUEST_ERROR_UNSUPPORTED, GUEST_ERROR_TAKEN (KVM has 16 ranges), GUEST_ERROR_SYSTEM.
 */
bool msr_filter_set(struct msr_filter *filter, enum msr_owner owner, const struct guest_msr_range *ranges, size_t n,
                    GError **error);

#endif
