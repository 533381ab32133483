// SPDX-License-Identifier: BSD-2-Clause
/* Which PMU a guest has: none, or KVM's. */
#ifndef VPROF_KVM_ARM64_VM_PMU_H
#define VPROF_KVM_ARM64_VM_PMU_H

#include <glib.h>
#include <linux/kvm.h>
#include <stdbool.h>

#include "kvm/vm_config.h"

struct vm;

/* Before the first vCPU: whether the guest can have that PMU, and the feature that gives it to them. Errors:
 * HOST_ERROR.
 */
bool vm_pmu_init(struct vm *vm, const struct vm_config *config, struct kvm_vcpu_init *processor, GError **error);
/* With vCPUs and the interrupt controller: its interrupt and its filter; guest.pmu, a sentence for people. */
bool vm_pmu_start(struct vm *vm, const struct vm_config *config, GError **error);

#endif
