// SPDX-License-Identifier: BSD-2-Clause
/* KVM's PMU, PMUv3 (Documentation/virt/kvm/devices/vcpu.rst, KVM_ARM_VCPU_PMU_V3_CTRL). */
#include "kvm/arm64/vm_pmu.h"

#include <string.h>
#include <sys/ioctl.h>

#include "kvm/boot/arm64/machine_map.h"
#include "kvm/host/host.h"
#include "kvm/pmu_filter.h"
#include "kvm/vcpu/arm64/vcpu_arm64.h"
#include "kvm/vm_arch.h"
#include "kvm/vm_parts.h"

/* Names as perf has them, and the common events (Arm ARM, D13.11.3) that Linux's driver counts for them. */
static const struct {
	const char *name;
	uint16_t event;
} named_events[] = {
	{"cycles", 0x11},
	{"instructions", 0x08},
	{"bus-cycles", 0x1d},
	{"cache-references", 0x04},
	{"cache-misses", 0x03},
	{"branches", 0x0c}, /* PC_WRITE_RETIRED */
	{"branches", 0x21}, /* BR_RETIRED, where the processor has it */
	{"branch-misses", 0x10},
	{"stalled-cycles-frontend", 0x23},
	{"stalled-cycles-backend", 0x24},
};

static bool refuse(GError **error, const char *which, const char *why, const char *instead)
{
	g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY, "cannot give the guest %s PMU: %s; take --pmu %s", which,
	            why, instead);
	return false;
}

bool vm_pmu_init(struct vm *vm, const struct vm_config *config, struct kvm_vcpu_init *processor, GError **error)
{
	const char *why = host_pmu_unavailable(vm->machine.kvm_fd);

	if (config->pmu == VM_PMU_OFF)
		return true;
	if (config->pmu == VM_PMU_EMULATED)
		return refuse(error, "an emulated", "--pmu emulated is for x86-64", why ? "off" : "kvm");
	if (why)
		return refuse(error, "KVM's", why, "off");
	vcpu_set_feature(processor, KVM_ARM_VCPU_PMU_V3);
	return true;
}

/* An event without a name is one range; a name stands for all of its rows. */
static bool add_event(GArray *filter, uint8_t action, const char *text, GError **error)
{
	struct kvm_pmu_event_filter range = {.nevents = 1, .action = action};
	const guint before = filter->len;

	for (size_t i = 0; i < G_N_ELEMENTS(named_events); i++) {
		if (strcmp(text, named_events[i].name) != 0)
			continue;
		range.base_event = named_events[i].event;
		g_array_append_val(filter, range);
	}
	if (filter->len > before)
		return true;
	if (!pmu_filter_raw(
		    text,
		    "cycles, instructions, bus-cycles, cache-references, cache-misses, branches, branch-misses, "
		    "stalled-cycles-frontend, stalled-cycles-backend",
		    &range.base_event, error))
		return false;
	g_array_append_val(filter, range);
	return true;
}

/* Ends with one of no events. */
struct kvm_pmu_event_filter *vm_arch_pmu_filter(uint8_t action, const char *const *events, size_t n, GError **error)
{
	GArray *filter = g_array_new(TRUE, TRUE, sizeof(struct kvm_pmu_event_filter));

	for (size_t i = 0; i < n; i++) {
		if (add_event(filter, action, events[i], error))
			continue;
		g_array_free(filter, TRUE);
		return NULL;
	}
	return (struct kvm_pmu_event_filter *)(void *)g_array_free(filter, FALSE);
}

static bool set(const struct vcpu *vcpu, uint64_t attribute, const void *value, const char *what, GError **error)
{
	const struct kvm_device_attr attr = {
		.group = KVM_ARM_VCPU_PMU_V3_CTRL, .attr = attribute, .addr = (uintptr_t)value};

	return ioctl(vcpu->fd, KVM_SET_DEVICE_ATTR, &attr) == 0 || vcpu_fail(vcpu, what, error);
}

/* It is the VM's, by any vCPU, and has to be there before the first PMU. */
static bool set_filter(const struct vm *vm, const struct kvm_pmu_event_filter *filter, GError **error)
{
	for (; filter && filter->nevents > 0; filter++)
		if (!set(&vm->machine.vcpus[0], KVM_ARM_VCPU_PMU_V3_FILTER, filter,
		         "set the filter of the PMU (KVM_ARM_VCPU_PMU_V3_FILTER)", error))
			return false;
	return true;
}

bool vm_pmu_start(struct vm *vm, const struct vm_config *config, GError **error)
{
	static const int irq = MACHINE_PMU_PPI + MACHINE_PPI_BASE;

	if (config->pmu == VM_PMU_OFF)
		return true;
	if (!set_filter(vm, config->pmu_filter, error))
		return false;
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++)
		if (!set(&vm->machine.vcpus[i], KVM_ARM_VCPU_PMU_V3_IRQ, &irq, "set the interrupt of the PMU", error) ||
		    !set(&vm->machine.vcpus[i], KVM_ARM_VCPU_PMU_V3_INIT, NULL, "start the PMU", error))
			return false;
	vm->guest.pmu = g_strdup("kvm: KVM's, on the host's PMU");
	return true;
}
