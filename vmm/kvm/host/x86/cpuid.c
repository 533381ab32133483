// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/x86/cpuid.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/host/host.h"

#define ENTRIES_MAX 256u
#define TOPOLOGY_SUBLEAVES 3u /* threads, cores, the end */

#define VENDOR_EBX_AMD 0x68747541u   /* "Auth", of AuthenticAMD */
#define VENDOR_EBX_HYGON 0x6f677948u /* "Hygo", of HygonGenuine */

#define LEAF_CACHES_INTEL 4u
#define LEAF_CACHES_AMD 0x8000001du

#define LEAF_1_ECX_X2APIC (1u << 21)
#define LEAF_1_ECX_TSC_DEADLINE (1u << 24)
#define LEAF_1_ECX_HYPERVISOR (1u << 31)
#define LEAF_1_EDX_HTT (1u << 28)
#define AMD_1_ECX_CMP_LEGACY (1u << 1)

struct kvm_cpuid_entry2 *cpuid_find(struct kvm_cpuid2 *cpuid, uint32_t function, uint32_t index)
{
	for (uint32_t i = 0; i < cpuid->nent; i++) {
		struct kvm_cpuid_entry2 *entry = &cpuid->entries[i];

		if (entry->function == function && entry->index == index)
			return entry;
	}
	return NULL;
}

static void drop(struct kvm_cpuid2 *cpuid, uint32_t function)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cpuid->nent; i++) {
		if (cpuid->entries[i].function != function)
			cpuid->entries[kept++] = cpuid->entries[i];
	}
	cpuid->nent = kept;
}

/*
 * Features that belong to the in-kernel interrupt controller, which KVM_GET_SUPPORTED_CPUID leaves to us
 * (Documentation/virt/kvm/api.rst 4.46).
 */
static void adjust_features(struct kvm_cpuid2 *cpuid, int kvm_fd)
{
	struct kvm_cpuid_entry2 *leaf_1 = cpuid_find(cpuid, 1, 0);

	if (leaf_1) {
		leaf_1->ecx |= LEAF_1_ECX_HYPERVISOR | LEAF_1_ECX_X2APIC;
		if (ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_TSC_DEADLINE_TIMER) > 0)
			leaf_1->ecx |= LEAF_1_ECX_TSC_DEADLINE;
	}
}

struct kvm_cpuid2 *cpuid_read(int kvm_fd, GError **error)
{
	/* Room for the entries of the topology and of a PMU beyond what the host fills in. */
	size_t bytes = sizeof(struct kvm_cpuid2) + ENTRIES_MAX * sizeof(struct kvm_cpuid_entry2);
	struct kvm_cpuid2 *cpuid = g_malloc0(bytes);
	cpuid->nent = ENTRIES_MAX - 2 * TOPOLOGY_SUBLEAVES - 1;
	if (ioctl(kvm_fd, KVM_GET_SUPPORTED_CPUID, cpuid) < 0) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot read the host's CPUID: %s",
		            g_strerror(errno));
		g_free(cpuid);
		return NULL;
	}
	adjust_features(cpuid, kvm_fd);
	return cpuid;
}

/* The extended topology leaves 0xb and 0x1f (SDM vol. 2A, CPUID): one thread a core, `vcpus` cores a package. */
static void append_topology(struct kvm_cpuid2 *cpuid, uint32_t function, uint32_t apic_id, unsigned vcpus,
                            unsigned shift)
{
	const struct kvm_cpuid_entry2 entries[TOPOLOGY_SUBLEAVES] = {
		{.eax = 0, .ebx = 1, .ecx = 1u << 8},
		{.eax = shift, .ebx = vcpus, .ecx = 2u << 8},
	};

	drop(cpuid, function);
	for (uint32_t i = 0; i < TOPOLOGY_SUBLEAVES; i++) {
		struct kvm_cpuid_entry2 *entry = &cpuid->entries[cpuid->nent++];

		*entry = entries[i];
		entry->function = function;
		entry->index = i;
		entry->flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
		entry->ecx |= i;
		entry->edx = apic_id;
	}
}

/*
 * Intel's leaf 4: EAX 31:26 cores of the package, 25:14 logical processors that share this cache, each less one. AMD's
 * 0x8000001d is the same but for the cores, where it has reserved bits (APM vol. 3, appendix E).
 */
static void set_cache_sharing(struct kvm_cpuid2 *cpuid, uint32_t function, unsigned vcpus)
{
	unsigned cores = function == LEAF_CACHES_INTEL ? vcpus : 1;

	for (uint32_t i = 0; i < cpuid->nent; i++) {
		struct kvm_cpuid_entry2 *entry = &cpuid->entries[i];

		if (entry->function != function || (entry->eax & 0x1f) == 0)
			continue;
		unsigned level = entry->eax >> 5 & 7;
		unsigned sharing = level >= 3 ? vcpus - 1 : 0;
		entry->eax = (entry->eax & 0x3fff) | sharing << 14 | (cores - 1) << 26;
	}
}

/* AMD's words for the same (APM vol. 3, appendix E): CmpLegacy, the number of cores, the extended APIC id. */
static void set_amd_topology(struct kvm_cpuid2 *cpuid, unsigned index, unsigned vcpus, unsigned shift)
{
	struct kvm_cpuid_entry2 *amd_1 = cpuid_find(cpuid, 0x80000001, 0);

	if (amd_1)
		amd_1->ecx = vcpus > 1 ? amd_1->ecx | AMD_1_ECX_CMP_LEGACY : amd_1->ecx & ~AMD_1_ECX_CMP_LEGACY;
	struct kvm_cpuid_entry2 *amd_8 = cpuid_find(cpuid, 0x80000008, 0);
	if (amd_8)
		amd_8->ecx = (amd_8->ecx & ~0xf0ffu) | shift << 12 | (vcpus - 1);
	struct kvm_cpuid_entry2 *amd_1e = cpuid_find(cpuid, 0x8000001e, 0);
	if (amd_1e) {
		amd_1e->eax = index;
		amd_1e->ebx = index; /* core id; one thread a core */
		amd_1e->ecx = 0;     /* node 0 of one */
	}
}

void cpuid_set_topology(struct kvm_cpuid2 *cpuid, unsigned index, unsigned vcpus)
{
	unsigned shift = vcpus > 1 ? g_bit_storage(vcpus - 1) : 0;
	struct kvm_cpuid_entry2 *leaf_1 = cpuid_find(cpuid, 1, 0);

	if (leaf_1) {
		leaf_1->ebx = (leaf_1->ebx & 0xffff) | vcpus << 16 | index << 24;
		leaf_1->edx = vcpus > 1 ? leaf_1->edx | LEAF_1_EDX_HTT : leaf_1->edx & ~LEAF_1_EDX_HTT;
	}
	set_cache_sharing(cpuid, LEAF_CACHES_INTEL, vcpus);
	set_cache_sharing(cpuid, LEAF_CACHES_AMD, vcpus);

	append_topology(cpuid, 0xb, index, vcpus, shift);
	struct kvm_cpuid_entry2 *leaf_0 = cpuid_find(cpuid, 0, 0);
	if (leaf_0 && leaf_0->eax >= 0x1f)
		append_topology(cpuid, 0x1f, index, vcpus, shift);
	if (leaf_0 && (leaf_0->ebx == VENDOR_EBX_AMD || leaf_0->ebx == VENDOR_EBX_HYGON))
		set_amd_topology(cpuid, index, vcpus, shift);
}
