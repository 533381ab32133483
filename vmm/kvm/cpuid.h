// SPDX-License-Identifier: BSD-2-Clause
/* What CPUID tells a guest. */
#ifndef VPROF_KVM_CPUID_H
#define VPROF_KVM_CPUID_H

#include <linux/kvm.h>

#include "kvm/host.h"

/* The host's supported CPUID without a PMU, with the host quirks' edits (quirks may be NULL). Free with g_free. */
struct kvm_cpuid2 *cpuid_read(int kvm_fd, const struct host_quirks *quirks, GError **error);

/* Makes it the CPUID of vCPU `index` of `vcpus`: APIC id and topology, one package of single-threaded cores. */
void cpuid_set_topology(struct kvm_cpuid2 *cpuid, unsigned index, unsigned vcpus);

/* The entry of a leaf, or NULL. */
struct kvm_cpuid_entry2 *cpuid_find(struct kvm_cpuid2 *cpuid, uint32_t function, uint32_t index);

#endif
