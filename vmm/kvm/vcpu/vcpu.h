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
#include "guest/guest_debug.h"
#include "kvm/vcpu/vcpu_time.h"

struct vcpu_machine;
struct vcpu_pmu;
struct vcpu_request;

/* The breakpoints of a VM: the same on every vCPU, each of which has a copy. */
struct breakpoints {
	size_t n;
	struct guest_breakpoint *all[GUEST_BREAKPOINTS_MAX];
};

/* The observers of a VM, the same way. */
struct observers {
	size_t n;
	struct guest_observer *all[GUEST_OBSERVERS_MAX];
};

/* vcpu_step.h. All zero at first. */
struct vcpu_step {
	struct guest_stepper *stepper; /* NULL: the vCPU runs freely */
	struct guest_regs at;          /* where it entered the guest last */
	bool entered;                  /* `at` is that of a step */
	bool halted;                   /* by the last step */
	bool resting;
	uint64_t until; /* resting: where it goes on */
};

/* vcpu_debug.h. All zero at first. */
struct vcpu_debug {
	struct breakpoints breakpoints;
	bool stepping; /* over the instruction at `over`; its breakpoint is not set meanwhile */
	uint64_t over;
	struct observers observers;
	struct guest_gprs gprs; /* at the last exit, if there are observers */
	struct guest_access access;
	struct vcpu_step step;
};

/* vcpu_patch.h. All zero at first. */
struct vcpu_patch {
	bool stepping;       /* over the instruction at `over`; the vCPU is alone */
	uint64_t over;       /* RIP */
	const uint8_t *byte; /* that the INT3 was in */
};

/* The registers at an exit, for the report of a crash at which KVM has reset the vCPU. */
struct vcpu_registers {
	bool valid;
	struct kvm_regs regs;
	struct kvm_sregs sregs;
};

/* [I] immutable once launched, [v] the vCPU's thread, [L] under lock, [a] atomic. */
struct vcpu {
	struct vcpu_machine *machine;   /* [I] */
	unsigned index;                 /* [I] */
	int fd;                         /* [I] */
	struct kvm_run *run;            /* [I]; what it points to [v], but immediate_exit */
	size_t run_bytes;               /* [I] */
	pthread_t thread;               /* [I] */
	struct guest_regs regs;         /* [v] at the last exit */
	struct vcpu_registers last;     /* [v] at the last exit that was no triple fault */
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

#define VCPU_KICK_SIGNAL SIGUSR1 /* ends KVM_RUN */

/* Creates the vCPU in KVM with the CPUID given, and its interrupt pins as a PC has them. */
bool vcpu_init(struct vcpu *vcpu, struct vcpu_machine *machine, unsigned index, const struct kvm_cpuid2 *cpuid,
               GError **error);
void vcpu_deinit(struct vcpu *vcpu);

/* The registers a boot processor starts with. */
bool vcpu_set_registers(struct vcpu *vcpu, const struct kvm_regs *regs, const struct kvm_sregs *sregs, GError **error);
bool vcpu_get_sregs(struct vcpu *vcpu, struct kvm_sregs *sregs, GError **error);

/* Lets it enter the guest. Any thread. */
void vcpu_go(struct vcpu *vcpu);
/* Makes it look at the VM's state soon. Any thread. */
void vcpu_kick(struct vcpu *vcpu);
/* Makes it leave the guest and waits until it has: machine->alone is another. Then lets it look there again. */
void vcpu_hold(struct vcpu *vcpu);
void vcpu_unhold(struct vcpu *vcpu);
/* As guest_ops.run_on_vcpu. */
bool vcpu_run_on(struct vcpu *vcpu, void (*fn)(void *data), void *data);

/* Sets bits of IA32_MISC_ENABLE (SDM vol. 4). */
bool vcpu_misc_enable(struct vcpu *vcpu, uint64_t bits, GError **error);
/* Keeps the registers of this exit, except of a triple fault, as vcpu->last. On its thread. */
void vcpu_keep_registers(struct vcpu *vcpu);
/*
 * Whether this exit is a triple fault after which KVM has reset the vCPU, as on AMD processors: they leave its state
 * undefined (shutdown_interception in arch/x86/kvm/svm/svm.c; APM vol. 2, 15.14.3). On its thread.
 */
bool vcpu_was_reset(const struct vcpu *vcpu);
/* Ends the guest because of this vCPU, on its thread. Steals message. */
void vcpu_crash(struct vcpu *vcpu, enum guest_end_reason reason, char *message);

/* For the thread: serves requests, and waits where it may not enter the guest. False: the guest has ended. */
bool vcpu_may_enter(struct vcpu *vcpu);
/* For the thread: it takes no more requests, and the clocks stand. */
void vcpu_leave(struct vcpu *vcpu);

#endif
