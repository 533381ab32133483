// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/x86/vm_pmu.h"

#include <elf.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/host/x86/cpuid.h"
#include "kvm/vcpu/x86/rdpmc.h"
#include "kvm/x86/vm_x86.h"

#define LEAF_1_ECX_DTES64 (1u << 2)
#define LEAF_1_ECX_PDCM (1u << 15)
#define LEAF_1_EDX_DS (1u << 21)
#define AMD_1_ECX_PERFCTR (1u << 23 | 1u << 24 | 1u << 28) /* core, northbridge, last-level cache counters */
#define LEAF_PMU 0xau
#define AMD_LEAF_PMU 0x80000022u

/* "GenuineIntel", and a family 6 processor of no known model: what it can do it says in CPUID. */
#define INTEL_EBX 0x756e6547u
#define INTEL_EDX 0x49656e69u
#define INTEL_ECX 0x6c65746eu
#define INTEL_SIGNATURE 0x000f06f0u

/* Best effort: in CPUID the guest has none anyway. */
static void turn_kvm_off(const struct vm *vm)
{
	struct kvm_enable_cap none = {.cap = KVM_CAP_PMU_CAPABILITY, .args = {KVM_PMU_CAP_DISABLE}};

	if (ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_PMU_CAPABILITY) & KVM_PMU_CAP_DISABLE)
		ioctl(vm->machine.fd, KVM_ENABLE_CAP, &none);
}

static bool init_kvm(struct vm *vm, const struct kvm_pmu_event_filter *filter, GError **error)
{
	const char *why = host_pmu_unavailable(vm->machine.kvm_fd);

	if (why) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY,
		            "cannot give the guest KVM's PMU: %s; take --pmu emulated", why);
		return false;
	}
	return !filter || ioctl(vm->machine.fd, KVM_SET_PMU_EVENT_FILTER, filter) == 0 ||
	       host_fail(error, "set the filter of the guest's PMU (KVM_SET_PMU_EVENT_FILTER)");
}

static bool init_emulated(struct vm *vm, GError **error)
{
	struct guest_msr_range ranges[GUEST_MSR_RANGES_MAX];

	g_assert(pmu_msr_ranges_n <= G_N_ELEMENTS(ranges));
	for (size_t i = 0; i < pmu_msr_ranges_n; i++)
		ranges[i] = (struct guest_msr_range){pmu_msr_ranges[i].first, pmu_msr_ranges[i].last, true, true};
	pmu_host_probe(&vm->arch->pmu_events);
	if (msr_filter_set(&vm->arch->msr_filter, MSR_OWNER_PMU, ranges, pmu_msr_ranges_n, error))
		return true;
	g_prefix_error(error, "cannot give the guest a PMU: ");
	return false;
}

bool vm_pmu_init(struct vm *vm, const struct vm_config *config, GError **error)
{
	vm->arch->pmu_kind = config->pmu;
	if (config->pmu == VM_PMU_KVM)
		return init_kvm(vm, config->pmu_filter, error);
	turn_kvm_off(vm);
	return config->pmu == VM_PMU_OFF || init_emulated(vm, error);
}

static void append_events(GString *text, const char *before, uint32_t events)
{
	for (unsigned i = 0; i < PMU_EVENTS; i++) {
		if ((events >> i & 1) == 0)
			continue;
		g_string_append_printf(text, "%s%s", before, pmu_event_name((enum pmu_event)i));
		before = ", ";
	}
}

static char *describe_emulated(const struct pmu_host_events *events, size_t replaced)
{
	GString *text = g_string_new("emulated: ");

	append_events(text, "", events->hardware);
	if (events->hardware)
		g_string_append(text, " by the host's PMU; ");
	append_events(text, "", events->all & ~events->hardware);
	if (events->all & ~events->hardware)
		g_string_append(text, " by the time in the guest; ");
	g_string_append_printf(text, "RDPMC instructions replaced in the kernel: %zu", replaced);
	return g_string_free(text, FALSE);
}

/* In what an image has brought into guest memory. */
static size_t replace_rdpmc(const struct memory *memory, const struct image *image)
{
	size_t n_segments, n = 0;
	const struct image_segment *segments = image_segments(image, &n_segments);

	for (size_t i = 0; i < n_segments; i++) {
		uint8_t *code = memory_at(memory, (gpa_t){segments[i].gpa}, segments[i].file_bytes);

		if (code && segments[i].flags & PF_X)
			n += rdpmc_replace(code, segments[i].file_bytes);
	}
	return n;
}

bool vm_pmu_loaded(struct vm *vm, const struct image *image, GError **error)
{
	if (vm->arch->pmu_kind == VM_PMU_KVM)
		vm->guest.pmu = g_strdup("kvm: KVM's, on the host's PMU");
	if (vm->arch->pmu_kind != VM_PMU_EMULATED)
		return true;
	size_t replaced = replace_rdpmc(vm->machine.memory, image);
	/* Linux's driver reads its counters in no other way, and would die of the first. */
	if (replaced == 0 && image_is_linux(image)) {
		g_set_error(
			error, HOST_ERROR, HOST_ERROR_CAPABILITY,
			"cannot give %s an emulated PMU: its RDPMC instructions are not found (is it built without CONFIG_PERF_EVENTS?); take --pmu off",
			image_path(image));
		return false;
	}
	vm->guest.pmu = describe_emulated(&vm->arch->pmu_events, replaced);
	return true;
}

static void clear(struct kvm_cpuid2 *cpuid, uint32_t function)
{
	for (uint32_t i = 0; i < cpuid->nent; i++) {
		struct kvm_cpuid_entry2 *entry = &cpuid->entries[i];

		if (entry->function == function)
			entry->eax = entry->ebx = entry->ecx = entry->edx = 0;
	}
}

static void hide(struct kvm_cpuid2 *cpuid)
{
	struct kvm_cpuid_entry2 *leaf_1 = cpuid_find(cpuid, 1, 0), *amd_1 = cpuid_find(cpuid, 0x80000001, 0);

	if (leaf_1) {
		leaf_1->ecx &= ~(LEAF_1_ECX_DTES64 | LEAF_1_ECX_PDCM);
		leaf_1->edx &= ~LEAF_1_EDX_DS;
	}
	if (amd_1)
		amd_1->ecx &= ~AMD_1_ECX_PERFCTR;
	clear(cpuid, LEAF_PMU);
	clear(cpuid, AMD_LEAF_PMU);
}

/*
 * Leaf 0xA is Intel's, and kernels look at it on Intel's processors only: on another host the guest gets to see one of
 * these.
 */
static void show_emulated(struct kvm_cpuid2 *cpuid, uint32_t events)
{
	const struct pmu_cpuid shown = pmu_cpuid(events);
	struct kvm_cpuid_entry2 *leaf_0 = cpuid_find(cpuid, 0, 0), *leaf_1 = cpuid_find(cpuid, 1, 0);
	struct kvm_cpuid_entry2 *leaf = cpuid_find(cpuid, LEAF_PMU, 0);

	if (!leaf)
		leaf = &cpuid->entries[cpuid->nent++];
	*leaf = (struct kvm_cpuid_entry2){
		.function = LEAF_PMU, .eax = shown.eax, .ebx = shown.ebx, .ecx = shown.ecx, .edx = shown.edx};
	if (!leaf_0 || !leaf_1)
		return;
	leaf_0->eax = MAX(leaf_0->eax, LEAF_PMU);
	if (leaf_0->ebx == INTEL_EBX)
		return;
	leaf_0->ebx = INTEL_EBX;
	leaf_0->edx = INTEL_EDX;
	leaf_0->ecx = INTEL_ECX;
	leaf_1->eax = INTEL_SIGNATURE;
}

void vm_pmu_cpuid(const struct vm *vm, struct kvm_cpuid2 *cpuid)
{
	if (vm->arch->pmu_kind == VM_PMU_KVM)
		return;
	hide(cpuid);
	if (vm->arch->pmu_kind == VM_PMU_EMULATED)
		show_emulated(cpuid, vm->arch->pmu_events.all);
}
