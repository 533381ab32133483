// SPDX-License-Identifier: BSD-2-Clause
/* A VM of arm64: a GICv3 in the kernel, PSCI, the virtual timer. */
#include <sys/ioctl.h>
#include <unistd.h>

#include "kvm/arm64/vm_pmu.h"
#include "kvm/boot/arm64/boot_state.h"
#include "kvm/boot/arm64/machine_map.h"
#include "kvm/host/host.h"
#include "kvm/vcpu/arm64/vcpu_arm64.h"
#include "kvm/vm_arch.h"
#include "kvm/vm_parts.h"

#define GIC_PRIVATE_IRQS 32u /* of each processor: the shared ones come after them */

struct vm_arch {
	struct kvm_vcpu_init processor; /* [I] the host's, with the features that its guests have */
	struct machine_arch machine;    /* what the vCPUs see of it */
};

void vm_arch_new(struct vm *vm, const struct vm_config *config)
{
	(void)config;
	vm->arch = g_new0(struct vm_arch, 1);
	vm->machine.arch = &vm->arch->machine;
	vm->guest.processor = GUEST_ARM64;
}

void vm_arch_free(struct vm *vm)
{
	g_clear_pointer(&vm->arch, g_free);
}

const char *const *vm_arch_quirks(const struct vm *vm)
{
	(void)vm;
	return NULL;
}

const char *const *vm_arch_options(const struct vm *vm)
{
	(void)vm;
	return NULL;
}

bool vm_arch_msrs_watch(struct vm *vm, const struct guest_msr_range *ranges, size_t n, GError **error)
{
	(void)vm;
	(void)ranges;
	if (n == 0)
		return true;
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED,
	            "cannot watch model-specific registers: they are x86-64's, and this guest is for arm64");
	return false;
}

unsigned vm_arch_irq(unsigned irq)
{
	return KVM_ARM_IRQ_TYPE_SPI << KVM_ARM_IRQ_TYPE_SHIFT | (GIC_PRIVATE_IRQS + irq);
}

static void debug_prepare(const struct vm *vm)
{
	const int n = ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_GUEST_DEBUG_HW_BPS);

	vm->arch->machine = (struct machine_arch){
		.breakpoints = (size_t)CLAMP(n, 0, (int)GUEST_BREAKPOINT_ADDRESSES_MAX),
		.debugs = ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_SET_GUEST_DEBUG) > 0};
}

bool vm_arch_create(struct vm *vm, const struct vm_config *config, GError **error)
{
	struct kvm_vcpu_init *processor = &vm->arch->processor;

	vm->machine.fd = ioctl(vm->machine.kvm_fd, KVM_CREATE_VM, 0);
	if (vm->machine.fd < 0)
		return host_fail(error, "create a KVM virtual machine");
	if (!memory_register(vm->machine.memory, vm->machine.fd, error))
		return false;
	debug_prepare(vm);
	if (ioctl(vm->machine.fd, KVM_ARM_PREFERRED_TARGET, processor) < 0)
		return host_fail(error, "learn the host's processor (KVM_ARM_PREFERRED_TARGET)");
	vcpu_set_feature(processor, KVM_ARM_VCPU_PSCI_0_2);
	/* KVM wants both or none. */
	if (ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_ARM_PTRAUTH_ADDRESS) > 0 &&
	    ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_ARM_PTRAUTH_GENERIC) > 0) {
		vcpu_set_feature(processor, KVM_ARM_VCPU_PTRAUTH_ADDRESS);
		vcpu_set_feature(processor, KVM_ARM_VCPU_PTRAUTH_GENERIC);
	}
	return vm_pmu_init(vm, config, processor, error);
}

bool vm_arch_vcpu(struct vm *vm, unsigned n, GError **error)
{
	const unsigned index = vm->machine.n_vcpus;
	struct vcpu_arch *arch = g_new0(struct vcpu_arch, 1);

	(void)n;
	arch->init = vm->arch->processor;
	if (index > 0)
		vcpu_set_feature(&arch->init, KVM_ARM_VCPU_POWER_OFF);
	return vcpu_init(&vm->machine.vcpus[index], &vm->machine, index, arch, error);
}

static bool gic_set(int gic, uint32_t group, uint64_t attribute, const void *value, GError **error)
{
	const struct kvm_device_attr attr = {.group = group, .attr = attribute, .addr = (uintptr_t)value};

	return ioctl(gic, KVM_SET_DEVICE_ATTR, &attr) == 0 ||
	       host_fail(error, "set up the interrupt controller (GICv3)");
}

/* Documentation/virt/kvm/devices/arm-vgic-v3.rst. With its vCPUs; KVM keeps it when the descriptor is closed. */
static bool gic_create(const struct vm *vm, GError **error)
{
	static const uint64_t distributor = MACHINE_GIC_DISTRIBUTOR_GPA,
			      redistributors = MACHINE_GIC_REDISTRIBUTORS_GPA;
	static const uint32_t irqs = GIC_PRIVATE_IRQS + MACHINE_SPIS;
	struct kvm_create_device device = {.type = KVM_DEV_TYPE_ARM_VGIC_V3};

	if (ioctl(vm->machine.fd, KVM_CREATE_DEVICE, &device) < 0)
		return host_fail(error,
		                 "create the interrupt controller (GICv3, which this host's processor needs itself)");
	const int gic = (int)device.fd;
	bool done = gic_set(gic, KVM_DEV_ARM_VGIC_GRP_NR_IRQS, 0, &irqs, error) &&
	            gic_set(gic, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_DIST, &distributor, error) &&
	            gic_set(gic, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_REDIST, &redistributors, error) &&
	            gic_set(gic, KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, NULL, error);
	close(gic);
	return done;
}

bool vm_arch_load(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error)
{
	const struct boot_config boot = {.image = image,
	                                 .initrd_path = config->initrd_path,
	                                 .command_line = vm->guest.command_line,
	                                 .vcpus = config->vcpus,
	                                 .n_virtio = vm_virtio_count(config),
	                                 .protocol = config->protocol,
	                                 .uart = vm->uart,
	                                 .pmu = config->pmu == VM_PMU_KVM};
	struct boot_state state;

	return gic_create(vm, error) && vm_pmu_start(vm, config, error) &&
	       boot_load(vm->machine.memory, &boot, &state, error) &&
	       vcpu_set_start(&vm->machine.vcpus[0], state.pc, state.device_tree, error);
}
