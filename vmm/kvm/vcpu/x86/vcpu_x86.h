// SPDX-License-Identifier: BSD-2-Clause
/* What a vCPU and its machine have on x86-64. */
#ifndef VPROF_KVM_VCPU_X86_VCPU_X86_H
#define VPROF_KVM_VCPU_X86_VCPU_X86_H

#include "guest/guest_debug.h"
#include "kvm/host/host.h"
#include "kvm/vcpu/vcpu.h"
#include "kvm/vcpu/vcpu_machine.h"

struct host_quirks;
struct vcpu_pmu;

/* vcpu_step.h. All zero at first. */
struct vcpu_step {
	struct guest_stepper *stepper; /* NULL: the vCPU runs freely */
	struct guest_regs at;          /* where it entered the guest last */
	bool entered;                  /* `at` is that of a step */
	bool halted;                   /* by the last step */
	bool resting;
	uint64_t until; /* resting: where it goes on */
};

/* The registers at an exit, for the report of a crash at which KVM has reset the vCPU. */
struct vcpu_registers {
	bool valid;
	struct kvm_regs regs;
	struct kvm_sregs sregs;
};

/* All zero at first. */
struct vcpu_arch {
	const struct kvm_cpuid2 *cpuid; /* as the guest sees it; while the vCPU is made */
	struct vcpu_registers last;     /* at the last exit that was no triple fault */
	struct vcpu_step step;
	struct vcpu_pmu *pmu; /* NULL: no PMU of ours */
};

/* [I] immutable once launched. */
struct machine_arch {
	enum host_kind host;              /* [I] which a sandbox does not see any more */
	const struct host_quirks *quirks; /* [I] NULL: none in force */
	void *quirk_state;                /* [I] */
	uint32_t step_control;            /* [I] KVM_GUESTDBG_* to go with a single step */
};

/* The registers a boot processor starts with. */
bool vcpu_set_registers(struct vcpu *vcpu, const struct kvm_regs *regs, const struct kvm_sregs *sregs, GError **error);
bool vcpu_get_sregs(struct vcpu *vcpu, struct kvm_sregs *sregs, GError **error);

/* Sets bits of IA32_MISC_ENABLE (SDM vol. 4). */
bool vcpu_misc_enable(struct vcpu *vcpu, uint64_t bits, GError **error);
/* Keeps the registers of this exit, except of a triple fault, as vcpu->arch->last. On its thread. */
void vcpu_keep_registers(struct vcpu *vcpu);
/* As a sample needs them. */
void vcpu_read_registers(const struct vcpu *vcpu, struct guest_regs *regs);
/*
 * Whether this exit is a triple fault after which KVM has reset the vCPU, as on AMD processors: they leave its state
 * undefined (shutdown_interception in arch/x86/kvm/svm/svm.c; APM vol. 2, 15.14.3). On its thread.
 */
bool vcpu_was_reset(const struct vcpu *vcpu);

/* Debug registers (SDM vol. 3B, 17.2). */
#define DR6_BS (UINT64_C(1) << 14)
/*
 * An instruction was executed on its registers that it may have been about to step over: for a breakpoint of ours, or
 * for a debugger in the guest, which gets its exception. False, with errno.
 */
bool vcpu_end_step(struct vcpu *vcpu);
/* After KVM_EXIT_DEBUG. */
void vcpu_debug_exit(struct vcpu *vcpu);

#endif
