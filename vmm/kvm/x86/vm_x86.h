// SPDX-License-Identifier: BSD-2-Clause
/* What a VM has on x86-64. */
#ifndef VPROF_KVM_X86_VM_X86_H
#define VPROF_KVM_X86_VM_X86_H

#include "kvm/host/x86/msr_filter.h"
#include "kvm/vcpu/x86/vcpu_x86.h"
#include "kvm/vm_parts.h"
#include "pmu/x86/host.h"

/* [I] immutable once launched, [M] main thread. */
struct vm_arch {
	struct machine_arch machine;       /* what the vCPUs see of it */
	struct msr_filter msr_filter;      /* [M] */
	enum vm_pmu_kind pmu_kind;         /* [I] */
	struct pmu_host_events pmu_events; /* [I] VM_PMU_EMULATED: what this host can count */
	struct kvm_cpuid2 *cpuid;          /* [I] as guests see it, but for the topology */
};

#endif
