// SPDX-License-Identifier: BSD-2-Clause
/* The CPUID of a guest. */
#ifndef VPROF_KVM_HOST_X86_CPUID_H
#define VPROF_KVM_HOST_X86_CPUID_H

#include <glib.h>
#include <linux/kvm.h>
#include <stdint.h>

/*
 * The CPUID that the host supports, with what the in-kernel interrupt controller adds, and room for the entries of a
 * topology and a PMU. Free with g_free. Errors: HOST_ERROR.
 */
struct kvm_cpuid2 *cpuid_read(int kvm_fd, GError **error);

/* Changes it to the CPUID of vCPU `index` of `vcpus`: APIC id and topology, one package of single-threaded cores. */
void cpuid_set_topology(struct kvm_cpuid2 *cpuid, unsigned index, unsigned vcpus);

/* The entry of a leaf, or NULL. */
struct kvm_cpuid_entry2 *cpuid_find(struct kvm_cpuid2 *cpuid, uint32_t function, uint32_t index);

#endif
