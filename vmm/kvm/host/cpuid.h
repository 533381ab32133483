// SPDX-License-Identifier: BSD-2-Clause
/* What CPUID tells a guest. */
#ifndef VPROF_KVM_CPUID_H
#define VPROF_KVM_CPUID_H

#include <linux/kvm.h>

#include "kvm/host/host.h"

struct vm;

/* The host's supported CPUID with the VM's PMU and its host quirks' edits. Free with g_free. */
struct kvm_cpuid2 *cpuid_read(const struct vm *vm, GError **error);

/* Makes it the CPUID of vCPU `index` of `vcpus`: APIC id and topology, one package of single-threaded cores. */
void cpuid_set_topology(struct kvm_cpuid2 *cpuid, unsigned index, unsigned vcpus);

/* The entry of a leaf, or NULL. */
struct kvm_cpuid_entry2 *cpuid_find(struct kvm_cpuid2 *cpuid, uint32_t function, uint32_t index);

#endif
