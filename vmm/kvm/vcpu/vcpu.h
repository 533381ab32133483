// SPDX-License-Identifier: BSD-2-Clause
/*
 * A vCPU and its thread. Between vcpu_launch and vcpu_join the thread owns the vCPU: it waits until the VM runs, enters
 * the guest, handles exits and tells the watcher.
 */
#ifndef VPROF_KVM_VCPU_H
#define VPROF_KVM_VCPU_H

#include <glib.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "guest/guest.h"
#include "kvm/vcpu/vcpu_debug.h"
#include "kvm/vcpu/vcpu_patch.h"
#include "kvm/vcpu/vcpu_pmu.h"
#include "kvm/vcpu/vcpu_time.h"

struct vcpu_machine;
struct vcpu_request;

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
	struct vcpu_pmu *pmu;           /* [I]; what it points to [v]. NULL: no PMU of ours */
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

/* Creates the vCPU in KVM with the CPUID given, and its interrupt pins as a PC has them. */
bool vcpu_init(struct vcpu *vcpu, struct vcpu_machine *machine, unsigned index, const struct kvm_cpuid2 *cpuid,
               GError **error);
void vcpu_deinit(struct vcpu *vcpu);

/* The registers a boot processor starts with. */
bool vcpu_set_registers(struct vcpu *vcpu, const struct kvm_regs *regs, const struct kvm_sregs *sregs, GError **error);
bool vcpu_get_sregs(struct vcpu *vcpu, struct kvm_sregs *sregs, GError **error);

/* Starts the thread, which waits for vcpu_go. */
bool vcpu_launch(struct vcpu *vcpu, GError **error);
void vcpu_join(struct vcpu *vcpu);

/* Lets it enter the guest. Any thread. */
void vcpu_go(struct vcpu *vcpu);
/* Makes it look at the VM's state soon. Any thread. */
void vcpu_kick(struct vcpu *vcpu);
/* Makes it leave the guest and waits until it has: machine->alone is another. Then lets it look there again. */
void vcpu_hold(struct vcpu *vcpu);
void vcpu_unhold(struct vcpu *vcpu);
/* As guest_ops.run_on_vcpu and guest_ops.vcpu_time. */
bool vcpu_run_on(struct vcpu *vcpu, void (*fn)(void *data), void *data);
void vcpu_read_time(struct vcpu *vcpu, bool reset, struct guest_vcpu_time *out);

/* Sets bits of IA32_MISC_ENABLE (SDM vol. 4). */
bool vcpu_misc_enable(struct vcpu *vcpu, uint64_t bits, GError **error);
/* Ends the guest because of this vCPU, on its thread. Steals message. */
void vcpu_crash(struct vcpu *vcpu, enum guest_end_reason reason, char *message);

#endif
