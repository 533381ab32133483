// SPDX-License-Identifier: BSD-2-Clause
/* The emulated PMU of one vCPU, on its thread; vcpu->arch->pmu is NULL where the guest has another or none. */
#ifndef VPROF_KVM_VCPU_X86_VCPU_PMU_H
#define VPROF_KVM_VCPU_X86_VCPU_PMU_H

#include <stdbool.h>

#include "pmu/x86/host.h"
#include "pmu/x86/pmu.h"
#include "pmu/x86/throttle.h"

struct vcpu;
struct guest_vcpu_time;

/* What became of the interrupts. */
struct vcpu_pmu_figures {
	uint64_t interrupts; /* delivered */
	uint64_t held;       /* of these, later than their overflow, for the guest's other work: pmu/x86/throttle.h */
	uint64_t merged;     /* periods that went by before the guest had handled the last overflow */
};

struct vcpu_pmu {
	struct pmu pmu;
	struct pmu_host host;
	bool due;     /* KVM_RUN returned, and an overflow may have come */
	bool masked;  /* no more interrupts until the guest is done with the last overflow */
	bool held;    /* the interrupt that waits has been counted */
	uint32_t lvt; /* with which the last interrupt was delivered */
	struct pmu_throttle throttle;
	struct vcpu_pmu_figures figures, base; /* since the vCPU began, and then until the last reset */
};

/* When the vCPU is made. Errors: HOST_ERROR. */
bool vcpu_pmu_init(struct vcpu *vcpu, const struct pmu_host_events *events, GError **error);
void vcpu_pmu_deinit(struct vcpu *vcpu);

/* The thread begins and ends. `signal` ends KVM_RUN. */
void vcpu_pmu_attach(struct vcpu *vcpu, int signal);
void vcpu_pmu_detach(struct vcpu *vcpu);

/* KVM_RUN returned, with EINTR (`interrupted`); nothing else has been done yet. */
void vcpu_pmu_left(struct vcpu *vcpu, bool interrupted);
/* An exit that is the PMU's: an access to its MSRs, or a replaced RDPMC. False: it is another's. */
bool vcpu_pmu_exit(struct vcpu *vcpu);
/* Every exit, at its end: delivers the interrupt of an overflow. */
void vcpu_pmu_handled(struct vcpu *vcpu);
/* The guest is entered next. */
void vcpu_pmu_enter(struct vcpu *vcpu);

/* Adds the figures since the last reset to the counters: pmu_interrupts, pmu_held and pmu_merged. */
void vcpu_pmu_counters(const struct vcpu *vcpu, struct guest_vcpu_time *out);
void vcpu_pmu_reset(struct vcpu *vcpu);

#endif
