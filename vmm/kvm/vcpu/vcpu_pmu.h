// SPDX-License-Identifier: BSD-2-Clause
/* The emulated PMU of one vCPU, on its thread; vcpu->pmu is NULL where the guest has another or none. */
#ifndef VPROF_KVM_VCPU_PMU_H
#define VPROF_KVM_VCPU_PMU_H

#include <stdbool.h>

#include "pmu/host.h"
#include "pmu/pmu.h"

struct vcpu;

struct vcpu_pmu {
	struct pmu pmu;
	struct pmu_host host;
	bool due;    /* KVM_RUN returned, and an overflow may have come */
	bool masked; /* no more interrupts until the guest is done with the last overflow */
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

#endif
