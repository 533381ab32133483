// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/x86/vm_x86.h"

#include <sys/ioctl.h>

#include "kvm/boot/x86/boot_registers.h"
#include "kvm/host/x86/cpuid.h"
#include "kvm/host/x86/host_quirks.h"
#include "kvm/vcpu/x86/vcpu_pmu.h"
#include "kvm/vm_arch.h"
#include "kvm/x86/vm_pmu.h"

/* Three pages for VMX's real mode and one for its identity map, in the hole, below the firmware's place. */
#define TSS_GPA 0xfffbd000ul
#define IDENTITY_MAP_GPA UINT64_C(0xfffbc000)

void vm_arch_new(struct vm *vm, const struct vm_config *config)
{
	vm->arch = g_new0(struct vm_arch, 1);
	vm->arch->machine.host = host_kind();
	vm->arch->machine.quirks = config->quirks ? host_quirks_find(vm->arch->machine.host) : NULL;
	vm->machine.arch = &vm->arch->machine;
}

void vm_arch_free(struct vm *vm)
{
	if (!vm->arch)
		return;
	g_free(vm->arch->machine.quirk_state);
	g_free(vm->arch->cpuid);
	g_clear_pointer(&vm->arch, g_free);
}

const char *const *vm_arch_quirks(const struct vm *vm)
{
	const struct host_quirks *quirks = vm->arch->machine.quirks;

	return quirks ? quirks->sentences : NULL;
}

const char *const *vm_arch_options(const struct vm *vm)
{
	const struct host_quirks *quirks = vm->arch->machine.quirks;

	return quirks ? quirks->options : NULL;
}

unsigned vm_arch_irq(unsigned irq)
{
	return irq;
}

static bool prepare_quirks(struct vm *vm, GError **error)
{
	struct machine_arch *machine = &vm->arch->machine;
	const struct host_quirks *quirks = machine->quirks;

	if (!quirks)
		return true;
	machine->quirk_state = quirks->vm_init(vm->machine.fd, vm->machine.memory, error);
	return machine->quirk_state &&
	       msr_filter_set(&vm->arch->msr_filter, MSR_OWNER_QUIRKS, quirks->msrs, quirks->msrs_n, error);
}

/* The host's CPUID as the guest may see it. */
static struct kvm_cpuid2 *guest_cpuid(const struct vm *vm, GError **error)
{
	struct kvm_cpuid2 *cpuid = cpuid_read(vm->machine.kvm_fd, error);

	if (!cpuid)
		return NULL;
	vm_pmu_cpuid(vm, cpuid);
	if (vm->arch->machine.quirks)
		vm->arch->machine.quirks->cpuid(cpuid);
	return cpuid;
}

/* Without KVM_GUESTDBG_BLOCKIRQ (Linux 5.16) an interrupt may come in the middle of a step: a hit may count twice. */
static uint32_t step_control(int kvm_fd)
{
	int supported = ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_SET_GUEST_DEBUG2);

	return supported > 0 ? (uint32_t)supported & KVM_GUESTDBG_BLOCKIRQ : 0;
}

bool vm_arch_msrs_watch(struct vm *vm, const struct guest_msr_range *ranges, size_t n, GError **error)
{
	return msr_filter_set(&vm->arch->msr_filter, MSR_OWNER_PROBES, ranges, n, error);
}

static bool create_bare(struct vm *vm, GError **error)
{
	uint64_t identity_map = IDENTITY_MAP_GPA;

	vm->machine.fd = ioctl(vm->machine.kvm_fd, KVM_CREATE_VM, 0);
	if (vm->machine.fd < 0)
		return host_fail(error, "create a KVM virtual machine");
	if (ioctl(vm->machine.fd, KVM_SET_TSS_ADDR, TSS_GPA) < 0)
		return host_fail(error, "set KVM's TSS address");
	if (ioctl(vm->machine.fd, KVM_SET_IDENTITY_MAP_ADDR, &identity_map) < 0)
		return host_fail(error, "set KVM's identity map address");
	return memory_register(vm->machine.memory, vm->machine.fd, error);
}

static bool prepare(struct vm *vm, const struct vm_config *config, GError **error)
{
	struct vm_arch *arch = vm->arch;

	arch->machine.step_control = step_control(vm->machine.kvm_fd);
	arch->msr_filter.vm_fd = vm->machine.fd;
	if (!prepare_quirks(vm, error) || !vm_pmu_init(vm, config, error))
		return false;
	arch->cpuid = guest_cpuid(vm, error);
	return arch->cpuid != NULL;
}

static bool create_chips(const struct vm *vm, GError **error)
{
	/* With the speaker's port 0x61 in the kernel too: its bit 4 follows the timer. */
	struct kvm_pit_config pit = {.flags = KVM_PIT_SPEAKER_DUMMY};

	if (ioctl(vm->machine.fd, KVM_CREATE_IRQCHIP, 0) < 0)
		return host_fail(error, "create the interrupt controllers");
	return ioctl(vm->machine.fd, KVM_CREATE_PIT2, &pit) >= 0 || host_fail(error, "create the timer");
}

/*
 * KVM's devices come last: each of them changes a bus, which is freed once nothing reads it, and a region of memory or
 * an MSR filter that is set meanwhile waits for that, 5 to 10 ms (synchronize_srcu in virt/kvm/kvm_main.c).
 */
bool vm_arch_create(struct vm *vm, const struct vm_config *config, GError **error)
{
	return create_bare(vm, error) && prepare(vm, config, error) && create_chips(vm, error);
}

bool vm_arch_vcpu(struct vm *vm, unsigned n, GError **error)
{
	const unsigned index = vm->machine.n_vcpus;
	struct vcpu *vcpu = &vm->machine.vcpus[index];
	struct vcpu_arch *arch = g_new0(struct vcpu_arch, 1);

	cpuid_set_topology(vm->arch->cpuid, index, n);
	arch->cpuid = vm->arch->cpuid;
	if (!vcpu_init(vcpu, &vm->machine, index, arch, error))
		return false;
	if (vm->arch->pmu_kind != VM_PMU_EMULATED || vcpu_pmu_init(vcpu, &vm->arch->pmu_events, error))
		return true;
	vcpu_deinit(vcpu);
	return false;
}

bool vm_arch_load(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error)
{
	const struct host_quirks *quirks = vm->arch->machine.quirks;
	const struct boot_config boot = {.image = image,
	                                 .initrd_path = config->initrd_path,
	                                 .command_line = vm->guest.command_line,
	                                 .vcpus = config->vcpus,
	                                 .n_virtio = vm_virtio_count(config),
	                                 .protocol = config->protocol,
	                                 .reserved = quirks ? quirks->reserved : (gpa_t){0},
	                                 .reserved_bytes = quirks ? quirks->reserved_bytes : 0};
	struct boot_state state;
	struct kvm_regs regs = {0};
	struct kvm_sregs sregs;

	if (!boot_load(vm->machine.memory, &boot, &state, error) ||
	    !vcpu_get_sregs(&vm->machine.vcpus[0], &sregs, error))
		return false;
	if (!vm_pmu_loaded(vm, image, error))
		return false;
	boot_registers(&state, &regs, &sregs);
	return vcpu_set_registers(&vm->machine.vcpus[0], &regs, &sregs, error);
}
