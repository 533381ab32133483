// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/host.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define KVM_PATH "/dev/kvm"

G_DEFINE_QUARK(vprof_host_error, host_error)

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

bool host_has(int kvm_fd, const struct host_capability *capability)
{
	int value = ioctl(kvm_fd, KVM_CHECK_EXTENSION, capability->number);

	return value > 0 && (value & capability->bits) == capability->bits;
}

/* Since Linux 5.18 KVM says so; it has turned itself off where the host has no PMU (kvm_init_pmu_capability). */
const char *host_pmu_unavailable(int kvm_fd)
{
	if (ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_PMU_CAPABILITY) > 0)
		return NULL;
	return "this host's KVM gives guests no PMU: the host has none itself (a virtual machine without one?), kvm.enable_pmu is N, or Linux is older than 5.18";
}

static bool set_open_error(GError **error, int number)
{
	switch (number) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		g_set_error(
			error, HOST_ERROR, HOST_ERROR_MISSING,
			"cannot open " KVM_PATH
			": %s; load kvm_intel or kvm_amd (modprobe), and see that virtualisation is enabled in the firmware, or nested virtualisation in the hypervisor",
			g_strerror(number));
		break;
	case EACCES:
	case EPERM:
		g_set_error(
			error, HOST_ERROR, HOST_ERROR_PERMISSION,
			"cannot open " KVM_PATH
			": %s; add yourself to group kvm (sudo usermod -aG kvm %s, then log in again), or run with sudo",
			g_strerror(number), g_get_user_name());
		break;
	default:
		g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot open " KVM_PATH ": %s", g_strerror(number));
	}
	return false;
}

static bool check(int kvm_fd, GError **error)
{
	int version = ioctl(kvm_fd, KVM_GET_API_VERSION, 0);

	if (version != KVM_API_VERSION) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY, KVM_PATH " has API version %d, not %d", version,
		            KVM_API_VERSION);
		return false;
	}
	for (const struct host_capability *capability = host_capabilities; capability->name; capability++) {
		if (!capability->required || host_has(kvm_fd, capability))
			continue;
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY,
		            "this host's KVM lacks %s (%s); it needs Linux 4.17 or later", capability->name,
		            capability->purpose);
		return false;
	}
	return true;
}

int host_open(GError **error)
{
	int fd = open(KVM_PATH, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		set_open_error(error, errno);
		return -1;
	}
	if (!check(fd, error)) {
		close(fd);
		return -1;
	}
	return fd;
}
