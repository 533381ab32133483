// SPDX-License-Identifier: BSD-2-Clause
/*
 * The time of a run loop, divided at the returns and entries of KVM_RUN, and the exits by their cause. The caller gives
 * times in ns of one monotonic clock. One thread.
 */
#ifndef VPROF_KVM_VCPU_EXIT_ACCOUNT_H
#define VPROF_KVM_VCPU_EXIT_ACCOUNT_H

#include <stdbool.h>

#include "guest/guest.h"

#define EXIT_ACCOUNT_SLOTS 256u /* a power of two, more than GUEST_EXITS_MAX */

struct exit_account {
	uint64_t start_ns, mark_ns; /* everything from start to mark is accounted for */
	uint64_t run_ns, vmm_ns, offline_ns;
	size_t n_exits;
	struct guest_exit exits[EXIT_ACCOUNT_SLOTS]; /* by hash; unused: ip 0, which is no exit of ours */
};

void exit_account_begin(struct exit_account *account, uint64_t now_ns);
/* Until now it was inside KVM_RUN; `offline`: waiting to be started. */
void exit_account_returned(struct exit_account *account, uint64_t now_ns, bool offline);
/* So much of the time before the last return, too: waiting to be started. */
void exit_account_waited(struct exit_account *account, uint64_t ns);
/* Until now it dealt with the exit of this ip, which counts as `times`. */
void exit_account_handled(struct exit_account *account, uint64_t now_ns, uint64_t ip, unsigned times);

/* Fills in wall, run, vmm and offline, and the exits, the longest first. */
void exit_account_read(const struct exit_account *account, struct guest_vcpu_time *out);

#endif
