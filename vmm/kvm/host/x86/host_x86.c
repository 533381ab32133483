// SPDX-License-Identifier: BSD-2-Clause
#include <cpuid.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kvm/host/host.h"
#include "kvm/host/x86/host_quirks.h"

const char host_linux_wanted[] = "4.17";
const char host_kvm_missing[] =
	"load kvm_intel or kvm_amd (modprobe), and see that virtualisation is enabled in the firmware, or nested virtualisation in the hypervisor";

const struct host_capability host_capabilities[] = {
	{"KVM_CAP_USER_MEMORY", KVM_CAP_USER_MEMORY, 0, true, "guest memory"},
	{"KVM_CAP_SET_TSS_ADDR", KVM_CAP_SET_TSS_ADDR, 0, true, "vCPUs on Intel processors"},
	{"KVM_CAP_SET_IDENTITY_MAP_ADDR", KVM_CAP_SET_IDENTITY_MAP_ADDR, 0, true, "vCPUs on Intel processors"},
	{"KVM_CAP_IRQCHIP", KVM_CAP_IRQCHIP, 0, true, "interrupt controllers in the kernel"},
	{"KVM_CAP_PIT2", KVM_CAP_PIT2, 0, true, "the timer in the kernel"},
	{"KVM_CAP_EXT_CPUID", KVM_CAP_EXT_CPUID, 0, true, "CPUID"},
	{"KVM_CAP_IMMEDIATE_EXIT", KVM_CAP_IMMEDIATE_EXIT, 0, true, "stopping a vCPU without a race"},
	{"KVM_CAP_SYNC_REGS", KVM_CAP_SYNC_REGS, KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS, true,
         "the registers of a sample without a system call"},
	{"KVM_CAP_PMU_CAPABILITY", KVM_CAP_PMU_CAPABILITY, KVM_PMU_CAP_DISABLE, false,
         "keeping the guest's own PMU away from the host's counters"},
	{"KVM_CAP_X86_USER_SPACE_MSR", KVM_CAP_X86_USER_SPACE_MSR, 0, false, "MSR exits (pvm hosts)"},
	{"KVM_CAP_X86_MSR_FILTER", KVM_CAP_X86_MSR_FILTER, 0, false, "MSR exits (pvm hosts)"},
	{"KVM_CAP_EXIT_ON_EMULATION_FAILURE", KVM_CAP_EXIT_ON_EMULATION_FAILURE, 0, false,
         "instructions that the host cannot emulate (pvm hosts)"},
	{NULL},
};

static bool cpuid_bit(unsigned leaf, unsigned ecx_bit)
{
	unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

	return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) && (ecx >> ecx_bit & 1) != 0;
}

/*
 * kvm.ko takes one vendor module at a time, and kvm_pvm, unlike the other two, does not need the processor's help: so
 * where it is loaded, it is the one. The others are told apart by the processor itself (SDM vol. 2A, CPUID.1:ECX.VMX;
 * APM vol. 3, Fn8000_0001_ECX.SVM), since built-in modules do not always show in /sys/module.
 */
enum host_kind host_kind(void)
{
	if (access("/sys/module/kvm_pvm", F_OK) == 0)
		return HOST_PVM;
	if (cpuid_bit(1, 5))
		return HOST_VMX;
	return cpuid_bit(0x80000001, 2) ? HOST_SVM : HOST_UNKNOWN;
}

const char *host_kind_name(enum host_kind kind)
{
	static const char *const names[] = {
		[HOST_UNKNOWN] = "unknown", [HOST_VMX] = "vmx", [HOST_SVM] = "svm", [HOST_PVM] = "pvm"};

	return names[kind];
}

const struct host_quirks *host_quirks_find(enum host_kind kind)
{
	return kind == HOST_PVM ? &host_quirks_pvm : NULL;
}

const char *const *host_quirk_sentences(void)
{
	const struct host_quirks *quirks = host_quirks_find(host_kind());

	return quirks ? quirks->sentences : NULL;
}

/* Since Linux 5.18 KVM says so; it has turned itself off where the host has no PMU (kvm_init_pmu_capability). */
const char *host_pmu_unavailable(int kvm_fd)
{
	if (ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_PMU_CAPABILITY) > 0)
		return NULL;
	return "this host's KVM gives guests no PMU: the host has none itself (a virtual machine without one?), kvm.enable_pmu is N, or Linux is older than 5.18";
}
