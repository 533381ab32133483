// SPDX-License-Identifier: BSD-2-Clause
#include <sys/ioctl.h>

#include "kvm/host/host.h"
#include "kvm/host/host_probe.h"

const char host_linux_wanted[] = "4.11";
const char host_kvm_missing[] =
	"the kernel has KVM where it starts at EL2: see that virtualisation is enabled in the firmware, or nested virtualisation in the hypervisor, and that kvm-arm.mode=none is not on its command line";

const struct host_capability host_capabilities[] = {
	{"KVM_CAP_USER_MEMORY", KVM_CAP_USER_MEMORY, 0, true, "guest memory"},
	{"KVM_CAP_DEVICE_CTRL", KVM_CAP_DEVICE_CTRL, 0, true, "the interrupt controller in the kernel"},
	{"KVM_CAP_ARM_PSCI_0_2", KVM_CAP_ARM_PSCI_0_2, 0, true, "starting vCPUs and ending the guest"},
	{"KVM_CAP_ONE_REG", KVM_CAP_ONE_REG, 0, true, "registers"},
	{"KVM_CAP_IMMEDIATE_EXIT", KVM_CAP_IMMEDIATE_EXIT, 0, true, "stopping a vCPU without a race"},
	{"KVM_CAP_ARM_PMU_V3", KVM_CAP_ARM_PMU_V3, 0, false, "a PMU of the guest's own (--pmu kvm)"},
	{"KVM_CAP_ARM_PTRAUTH_ADDRESS", KVM_CAP_ARM_PTRAUTH_ADDRESS, 0, false, "signed return addresses in guests"},
	{NULL},
};

enum host_kind host_kind(void)
{
	return HOST_ARM64;
}

const char *host_kind_name(enum host_kind kind)
{
	return kind == HOST_ARM64 ? "arm64" : "unknown";
}

const char *const *host_quirk_sentences(void)
{
	return NULL;
}

const char *host_pmu_unavailable(int kvm_fd)
{
	if (ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_ARM_PMU_V3) > 0)
		return NULL;
	return "this host's KVM gives guests no PMU: the host has none itself (a virtual machine without one?)";
}

json_t *host_probe_emulated_pmu(void)
{
	return json_pack("{s:[], s:[]}", "events", "by-hardware");
}
