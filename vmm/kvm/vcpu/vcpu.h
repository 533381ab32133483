// SPDX-License-Identifier: BSD-2-Clause
/* A vCPU: its state, and what other threads ask of its thread (vcpu_run.h). */
#ifndef VPROF_KVM_VCPU_VCPU_H
#define VPROF_KVM_VCPU_VCPU_H

#include <glib.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "guest/guest.h"
#include "kvm/vcpu/vcpu_debug.h"
#include "kvm/vcpu/vcpu_patch.h"
#include "kvm/vcpu/vcpu_time.h"

struct vcpu_machine;
struct vcpu_request;

/* What the architecture keeps of a vCPU: vcpu/x86, vcpu/arm64. */
struct vcpu_arch;

/* [I] immutable once launched, [v] the vCPU's thread, [L] under lock, [a] atomic. */
struct vcpu {
	struct vcpu_machine *machine;   /* [I] */
	unsigned index;                 /* [I] */
	int fd;                         /* [I] */
	struct kvm_run *run;            /* [I]; what it points to [v], but immediate_exit */
	size_t run_bytes;               /* [I] */
	pthread_t thread;               /* [I] */
	struct guest_regs regs;         /* [v] at the last exit */
	struct vcpu_time_clocks clocks; /* [v] */
	struct vcpu_debug debug;        /* [v] */
	struct vcpu_patch patch;        /* [v] */
	struct vcpu_arch *arch;         /* [I]; what it points to [v] */
	pthread_mutex_t lock;
	pthread_cond_t changed;       /* request, its completion, go, outside */
	struct vcpu_request *request; /* [L] NULL: none */
	bool go;                      /* [L] the VM has started */
	bool gone;                    /* [L] there is no thread, or it takes no more requests */
	bool outside;                 /* [L] the thread waits, and looks at machine->alone before it enters the guest */
	/*
	 * [a] The thread must look at what is under the lock before it enters the guest. Stored with release order
	 * under the lock, loaded with acquire order by vcpu_may_enter.
	 */
	atomic_bool attention;
};

#define VCPU_KICK_SIGNAL SIGUSR1 /* ends KVM_RUN */

/* Creates the vCPU in KVM; arch: vcpu_arch.h, which it takes over. */
bool vcpu_init(struct vcpu *vcpu, struct vcpu_machine *machine, unsigned index, struct vcpu_arch *arch, GError **error);
void vcpu_deinit(struct vcpu *vcpu);

/* Lets it enter the guest. Any thread. */
void vcpu_go(struct vcpu *vcpu);
/* Makes it look at the VM's state soon. Any thread. */
void vcpu_kick(struct vcpu *vcpu);
/* Makes it leave the guest and waits until it has: machine->alone is another. Then lets it look there again. */
void vcpu_hold(struct vcpu *vcpu);
void vcpu_unhold(struct vcpu *vcpu);
/* As guest_ops.run_on_vcpu. */
bool vcpu_run_on(struct vcpu *vcpu, void (*fn)(void *data), void *data);

/* Sets HOST_ERROR_SYSTEM, "cannot `what` of vCPU N" and what errno says; returns false. */
bool vcpu_fail(const struct vcpu *vcpu, const char *what, GError **error);

/* Ends the guest because of this vCPU, on its thread. Steals message. */
void vcpu_crash(struct vcpu *vcpu, enum guest_end_reason reason, char *message);

/* For the thread: serves requests, and waits where it may not enter the guest. False: the guest has ended. */
bool vcpu_may_enter(struct vcpu *vcpu);
/* For the thread: it takes no more requests, and the clocks stand. */
void vcpu_leave(struct vcpu *vcpu);

#endif
