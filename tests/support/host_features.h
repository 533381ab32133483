// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_TEST_SUPPORT_HOST_FEATURES_H
#define VPROF_TEST_SUPPORT_HOST_FEATURES_H

/* What the KVM of this host does for a debugger, found out with a guest of a few instructions and without the code
 * under test. */
enum host_feature {
	HOST_FEATURE_BREAKPOINT, /* KVM_GUESTDBG_USE_HW_BP: an instruction that DR0 points at is reported */
	HOST_FEATURE_PATCH,      /* KVM_GUESTDBG_USE_SW_BP: the guest does not see an INT3 that was patched into it */
	N_HOST_FEATURES
};

/* NULL: this host has it, or has no KVM to ask; else what it does instead, in words that follow "this host's KVM". */
const char *host_feature_missing(enum host_feature feature);

#endif
