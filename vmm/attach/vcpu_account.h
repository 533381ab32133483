// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the time of an attached guest's vCPU goes: the scheduler's clocks of its thread, KVM's statistics, and perf
 * events that count on the thread. Main thread only.
 */
#ifndef VPROF_ATTACH_VCPU_ACCOUNT_H
#define VPROF_ATTACH_VCPU_ACCOUNT_H

#include <sys/types.h>

#include "attach/kvm_view.h"
#include "attach/monitor.h"
#include "exits/exit_trace.h"
#include "guest/guest.h"

struct vcpu_account;

struct vcpu_account_source {
	pid_t pid, thread;       /* thread 0: the vCPU is unplugged */
	struct kvm_view *view;   /* NULL: the monitor has the statistics */
	unsigned id;             /* KVM's, of the vCPU */
	struct monitor *monitor; /* NULL: none */
	const char *path;        /* of the vCPU in QEMU's object tree; NULL: not known */
	bool kvm;                /* else every instruction of the guest is QEMU's own */
	unsigned vcpu;
	struct exit_trace *exits; /* KVM's trace points; NULL: not read, because: */
	const char *untraced;
};

/*
 * Counts from now on. `before`: the account that it replaces, because the vCPU has another thread; NULL: none. Time of
 * which the vCPU had none is part of the new one.
 */
struct vcpu_account *vcpu_account_new(const struct vcpu_account_source *source, const struct vcpu_account *before);
void vcpu_account_free(struct vcpu_account *account);

/* The thread it was made for. */
pid_t vcpu_account_thread(const struct vcpu_account *account);

/* Brings it up to now. `source`: as it is now, of the same thread; an account stands still when its thread has ended.
 */
void vcpu_account_update(struct vcpu_account *account, const struct vcpu_account_source *source);
/* From the beginning to the last update. */
void vcpu_account_read(const struct vcpu_account *account, bool kvm, struct guest_vcpu_time *out);

#endif
