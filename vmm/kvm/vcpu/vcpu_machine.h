// SPDX-License-Identifier: BSD-2-Clause
/* What the vCPUs of a VM share. */
#ifndef VPROF_KVM_VCPU_VCPU_MACHINE_H
#define VPROF_KVM_VCPU_VCPU_MACHINE_H

#include <stdatomic.h>
#include <stdint.h>

#include "guest/guest.h"
#include "kvm/vcpu/file_patch.h"
#include "kvm/vcpu/patch.h"

struct devices;
struct machine_arch;
struct memory;
struct vcpu;
struct vcpu_machine;

/* What a vCPU's thread tells the VM. */
struct vcpu_machine_ops {
	/* The guest has to end. Steals message. */
	void (*ended)(struct vcpu_machine *machine, enum guest_end_reason reason, char *message);
	/* The same, because of this vCPU: its registers go into the report. */
	void (*crashed)(struct vcpu *vcpu, enum guest_end_reason reason, char *message);
	/* The last call of a thread. */
	void (*left)(struct vcpu_machine *machine);
};

/* [I] immutable once launched, [a] atomic. The devices and the patches have locks of their own. */
struct vcpu_machine {
	const struct vcpu_machine_ops *ops; /* [I] */
	struct guest *guest;                /* [I] its watchers, and its memory by address */
	struct memory *memory;              /* [I] */
	int kvm_fd, fd;                     /* [I] */
	struct machine_arch *arch;          /* [I] what the architecture keeps of it: vcpu/x86, vcpu/arm64 */
	struct devices *devices;            /* [I] */
	struct patches patches;             /* those of the breakpoints that are patched */
	struct file_patches file_patches;   /* the same in pages of files */
	struct vcpu *vcpus;                 /* [I] */
	unsigned n_vcpus;                   /* [I] those that are initialised */
	struct vcpu *_Atomic alone;         /* [a] no other vCPU enters the guest; NULL: all may */
	atomic_bool ending;                 /* [a] stored with release order; partner: the run loop */
};

#endif
