// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a vCPU does in a way of its architecture: vcpu/x86 and vcpu/arm64 each have all of it. The run loop calls these,
 * on the vCPU's thread, in the order that they have here.
 */
#ifndef VPROF_KVM_VCPU_VCPU_ARCH_H
#define VPROF_KVM_VCPU_VCPU_ARCH_H

#include "kvm/vcpu/vcpu.h"

/* vcpu->fd and vcpu->run are there: makes the vCPU what a machine has at its start. Errors: HOST_ERROR. */
bool vcpu_arch_init(struct vcpu *vcpu, GError **error);
/* Frees vcpu->arch; NULL is fine. */
void vcpu_arch_deinit(struct vcpu *vcpu);

/* The thread begins. */
void vcpu_arch_attach(struct vcpu *vcpu);

/* The guest is entered next. */
void vcpu_arch_enter(struct vcpu *vcpu);
/* KVM_RUN returned (failed: its errno or 0), and nothing else has been done yet. */
void vcpu_arch_left(struct vcpu *vcpu, int failed);
/* Reads vcpu->regs. */
void vcpu_arch_look(struct vcpu *vcpu, int failed);
/* The watcher has been told. */
void vcpu_arch_exited(struct vcpu *vcpu, int failed);
/* Handles the exit; returns what it is filed under (vprof/exit.h). */
uint64_t vcpu_arch_handle(struct vcpu *vcpu, int failed);
/* The exit is handled; the watcher will be told. */
void vcpu_arch_handled(struct vcpu *vcpu);

/* The thread ends. */
void vcpu_arch_detach(struct vcpu *vcpu);

/* Adds what is counted of it to the counters; starts to count anew. */
void vcpu_arch_counters(const struct vcpu *vcpu, struct guest_vcpu_time *out);
void vcpu_arch_reset(struct vcpu *vcpu);

/* The state in which it failed, for the report. */
struct vcpu_state {
	char *text;          /* registers, several lines; the caller's */
	const char *ip_name; /* x86-64: "RIP" */
	uint64_t ip;
	bool past; /* as they were at the exit before */
};
/* On its thread. */
void vcpu_arch_describe(const struct vcpu *vcpu, struct vcpu_state *state);

#endif
