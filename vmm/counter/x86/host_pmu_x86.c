// SPDX-License-Identifier: BSD-2-Clause
#include "counter/host_pmu.h"

#include <cpuid.h>
#include <string.h>

/* AMD64 Architecture Programmer's Manual vol. 3, appendix E; vol. 2, 13.2. */
#define AMD_FEATURES 0x80000001u
#define AMD_PERFCTR_CORE (UINT32_C(1) << 23) /* ECX: six counters instead of four */
#define AMD_PERFMON 0x80000022u              /* EAX bit 0: version 2; EBX 3:0: how many counters */
#define AMD_WIDTH 48u

/* SDM vol. 2A, CPUID; ECX bit 31 is kept free for hypervisors. */
#define FEATURES 1u
#define HYPERVISOR (UINT32_C(1) << 31)
#define INTEL_PERFMON 0xau

static uint32_t bits(uint32_t value, unsigned from, unsigned n)
{
	return value >> from & ((UINT32_C(1) << n) - 1);
}

static bool vendor_is(const struct host_pmu_cpuid *leaf0, const char name[12])
{
	char vendor[12];

	memcpy(vendor, &leaf0->ebx, 4);
	memcpy(vendor + 4, &leaf0->edx, 4);
	memcpy(vendor + 8, &leaf0->ecx, 4);
	return memcmp(vendor, name, sizeof(vendor)) == 0;
}

/* The first AMD64 processors had four counters, and no bit for them; a hypervisor rarely has. */
static bool amd_decode(struct host_pmu_cpuid (*cpuid)(uint32_t leaf), struct host_pmu *pmu)
{
	const struct host_pmu_cpuid monitoring = cpuid(AMD_PERFMON);
	bool extended = (cpuid(AMD_FEATURES).ecx & AMD_PERFCTR_CORE) != 0;

	*pmu = (struct host_pmu){.name = "AMD", .version = 1, .general = {extended ? 6 : 4, AMD_WIDTH}};
	if (!(monitoring.eax & 1))
		return extended || !(cpuid(FEATURES).ecx & HYPERVISOR);
	pmu->version = 2;
	pmu->general.counters = bits(monitoring.ebx, 0, 4);
	return true;
}

bool host_pmu_decode(struct host_pmu_cpuid (*cpuid)(uint32_t leaf), struct host_pmu *pmu)
{
	const struct host_pmu_cpuid leaf0 = cpuid(0), perfmon = cpuid(INTEL_PERFMON);

	/* The Hygon processors are AMD's design. */
	if (vendor_is(&leaf0, "AuthenticAMD") || vendor_is(&leaf0, "HygonGenuine"))
		return amd_decode(cpuid, pmu);
	if (bits(perfmon.eax, 0, 8) == 0)
		return false;
	*pmu = (struct host_pmu){
		.name = "Intel architectural",
		.version = bits(perfmon.eax, 0, 8),
		.general = {bits(perfmon.eax, 8, 8), bits(perfmon.eax, 16, 8)},
	};
	/* The fixed counters' fields are valid from version 2 on. */
	if (pmu->version >= 2)
		pmu->fixed = (struct host_pmu_counters){bits(perfmon.edx, 0, 5), bits(perfmon.edx, 5, 8)};
	return true;
}

static struct host_pmu_cpuid this_cpuid(uint32_t leaf)
{
	struct host_pmu_cpuid answer = {0};

	/* Unlike the instruction, it does not answer for the last leaf when this one is absent. */
	__get_cpuid_count(leaf, 0, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
	return answer;
}

bool host_pmu_read(struct host_pmu *pmu)
{
	return host_pmu_decode(this_cpuid, pmu);
}
