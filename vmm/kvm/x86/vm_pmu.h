// SPDX-License-Identifier: BSD-2-Clause
/* Which PMU a guest has: none, the VMM's (vmm/pmu), or KVM's. */
#ifndef VPROF_KVM_X86_VM_PMU_H
#define VPROF_KVM_X86_VM_PMU_H

#include <glib.h>
#include <linux/kvm.h>
#include <stdbool.h>

#include "kvm/vm_config.h"

struct vm;
struct image;

/* After KVM_CREATE_VM, before the first vCPU: decides, and tells KVM. Errors: HOST_ERROR. */
bool vm_pmu_init(struct vm *vm, const struct vm_config *config, GError **error);
/* With the image loaded: its RDPMC instructions, and guest.pmu, a sentence for people. Errors: HOST_ERROR. */
bool vm_pmu_loaded(struct vm *vm, const struct image *image, GError **error);
/* What the guest may see of it in CPUID; *cpuid has the host's entries. */
void vm_pmu_cpuid(const struct vm *vm, struct kvm_cpuid2 *cpuid);

#endif
