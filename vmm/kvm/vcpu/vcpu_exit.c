// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_exit.h"

#include "kvm/device/devices.h"
#include "kvm/vcpu/vcpu_machine.h"

static void handle_mmio(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	size_t bytes = MIN(run->mmio.len, sizeof(run->mmio.data));

	if (run->mmio.is_write)
		devices_mmio_write(vcpu->machine->devices, vcpu->index, run->mmio.phys_addr, run->mmio.data, bytes);
	else
		devices_mmio_read(vcpu->machine->devices, run->mmio.phys_addr, run->mmio.data, bytes);
}

void vcpu_exit_handle(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;

	switch (run->exit_reason) {
	case KVM_EXIT_MMIO:
		handle_mmio(vcpu);
		break;
	case KVM_EXIT_INTR:
		break;
	case KVM_EXIT_FAIL_ENTRY:
		vcpu_crash(
			vcpu, GUEST_END_VMM_ERROR,
			g_strdup_printf("the processor refused to enter the guest on vCPU %u: hardware reason 0x%llx",
		                        vcpu->index, run->fail_entry.hardware_entry_failure_reason));
		break;
	default:
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("unhandled KVM exit %u on vCPU %u", run->exit_reason, vcpu->index));
	}
}
