// SPDX-License-Identifier: BSD-2-Clause
/*
 * Breakpoints and observers of one vCPU, on its thread. The processor's breakpoints (KVM_GUESTDBG_USE_HW) take the
 * place of the guest's own while there are any.
 */
#ifndef VPROF_KVM_VCPU_VCPU_DEBUG_H
#define VPROF_KVM_VCPU_VCPU_DEBUG_H

#include <linux/kvm.h>

#include "guest/guest_debug.h"

struct patch_trap;
struct vcpu;
struct vcpu_machine;

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

/* All zero at first. */
struct vcpu_debug {
	struct breakpoints breakpoints;
	bool stepping; /* over the instruction at `over`; its breakpoint is not set meanwhile */
	uint64_t over, over_stack;
	/* A step that was cut short: the next hit there with this stack pointer has been told already; 0: none. */
	uint64_t again, again_stack;
	struct observers observers;
	bool observed;          /* the exit in hand, by observers */
	struct guest_gprs gprs; /* at that exit */
	struct guest_access access;
};

/* The distinct addresses of the processor's; returns how many, at most GUEST_BREAKPOINT_ADDRESSES_MAX. */
size_t breakpoints_addresses(const struct breakpoints *breakpoints, uint64_t to[GUEST_BREAKPOINT_ADDRESSES_MAX]);
/* Whether any of them is a patch. */
bool breakpoints_patched(const struct breakpoints *breakpoints);

/* From now on these. False, with errno: KVM refused, and nothing has changed. */
bool vcpu_debug_set(struct vcpu *vcpu, const struct breakpoints *breakpoints);

/* Calls the breakpoints at this address; returns whether there are any. */
bool vcpu_debug_hit(struct vcpu *vcpu, uint64_t ip);

/* Calls those in this place of a file. */
void vcpu_debug_hit_in_file(struct vcpu *vcpu, const struct file_code *code);

/* Around the handling of an exit. */
void vcpu_observe_exit(struct vcpu *vcpu, bool interrupted);
void vcpu_observe_handled(struct vcpu *vcpu);

/* ---- in a way of the architecture: vcpu/x86 and vcpu/arm64 each have all of it ---- */

/* What patches are made of. */
extern const struct patch_trap vcpu_arch_trap;

/* How many breakpoints the processor has, 1..GUEST_BREAKPOINT_ADDRESSES_MAX. */
size_t vcpu_arch_breakpoints(const struct vcpu_machine *machine);
/* Why there can be no patches, and why no steps: a clause; NULL: there can be. */
const char *vcpu_arch_why_no_patch(const struct vcpu_machine *machine);
const char *vcpu_arch_why_no_step(const struct vcpu_machine *machine);

/* The same of patches in programs. */
const char *vcpu_arch_why_no_file_patch(const struct vcpu_machine *machine);
/* Why vcpu_arch_execute_in_program cannot execute this instruction of `n` bytes: a clause; NULL: it can. */
const char *vcpu_arch_why_not_executed(const uint8_t *code, size_t n);

/* Tells KVM again what to stop at, as struct vcpu_debug has it. False, with errno. */
bool vcpu_arch_debug(struct vcpu *vcpu);
/* As guest_debug_ops.step. False, with errno: KVM refused, and nothing has changed. */
bool vcpu_arch_step(struct vcpu *vcpu, struct guest_stepper *stepper);

/* The general registers at the last exit. */
void vcpu_arch_gprs(const struct vcpu *vcpu, struct guest_gprs *gprs);
/* What kvm_run says of an exit that is none of KVM_EXIT_MMIO; *access has its reason. */
void vcpu_arch_access(const struct kvm_run *run, struct guest_access *access);

/* Where the vCPU finds an address now. False: nowhere. */
bool vcpu_arch_translate(struct vcpu *vcpu, gva_t at, gpa_t *to);
/* Whether this exit (failed: errno of KVM_RUN) is the end of a step. */
bool vcpu_arch_stepped(struct vcpu *vcpu, int failed);
/* Whether it is a trap, at the ip of vcpu->regs. */
bool vcpu_arch_trapped(const struct vcpu *vcpu);
/*
 * Tells the breakpoints there, and does on the registers what the instruction that a trap in this place stands for
 * does. False: nothing has happened, and it needs a step.
 */
bool vcpu_arch_execute(struct vcpu *vcpu, const uint8_t *place);
/*
 * The same of an instruction of a program, where the guest takes the page fault first that it may need. False: nothing
 * has happened, and it cannot be done.
 */
bool vcpu_arch_execute_in_program(struct vcpu *vcpu, const struct file_code *code);

#endif
