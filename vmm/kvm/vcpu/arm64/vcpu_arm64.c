// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/arm64/vcpu_arm64.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <vprof/exit.h>

#include "kvm/host/host.h"
#include "kvm/vcpu/vcpu_arch.h"
#include "kvm/vcpu/vcpu_exit.h"
#include "kvm/vcpu/vcpu_machine.h"

bool vcpu_arch_init(struct vcpu *vcpu, GError **error)
{
	if (ioctl(vcpu->fd, KVM_ARM_VCPU_INIT, &vcpu->arch->init) == 0)
		return true;
	g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot initialise vCPU %u: %s", vcpu->index,
	            g_strerror(errno));
	return false;
}

void vcpu_arch_deinit(struct vcpu *vcpu)
{
	g_clear_pointer(&vcpu->arch, g_free);
}

/* There is nothing to do around the thread or around an entry. */
void vcpu_arch_attach(struct vcpu *vcpu)
{
	(void)vcpu;
}

void vcpu_arch_detach(struct vcpu *vcpu)
{
	(void)vcpu;
}

void vcpu_arch_enter(struct vcpu *vcpu)
{
	(void)vcpu;
}

void vcpu_arch_left(struct vcpu *vcpu, int failed)
{
	(void)vcpu;
	(void)failed;
}

void vcpu_arch_exited(struct vcpu *vcpu, int failed)
{
	vcpu_observe_exit(vcpu, failed != 0);
	vcpu_step_exited(vcpu, failed);
}

void vcpu_arch_handled(struct vcpu *vcpu)
{
	vcpu_observe_handled(vcpu);
}

void vcpu_arch_counters(const struct vcpu *vcpu, struct guest_vcpu_time *out)
{
	(void)vcpu;
	(void)out;
}

void vcpu_arch_reset(struct vcpu *vcpu)
{
	(void)vcpu;
}

void vcpu_arch_look(struct vcpu *vcpu, int failed)
{
	vcpu_read_registers(vcpu, &vcpu->regs);
	vcpu_patch_returned(vcpu, failed);
}

/* PSCI's SYSTEM_OFF and SYSTEM_RESET (Arm DEN 0022). */
static void handle_system_event(struct vcpu *vcpu)
{
	struct vcpu_machine *machine = vcpu->machine;

	switch (vcpu->run->system_event.type) {
	case KVM_SYSTEM_EVENT_SHUTDOWN:
		machine->ops->ended(machine, GUEST_END_POWER_OFF, NULL);
		break;
	case KVM_SYSTEM_EVENT_RESET:
		machine->ops->ended(machine, GUEST_END_REBOOT, NULL);
		break;
	default:
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("unhandled system event %u on vCPU %u", vcpu->run->system_event.type,
		                           vcpu->index));
	}
}

static void handle_exit(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;

	switch (run->exit_reason) {
	case KVM_EXIT_SYSTEM_EVENT:
		handle_system_event(vcpu);
		break;
	case KVM_EXIT_DEBUG:
		vcpu_debug_exit(vcpu);
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("KVM gave up on vCPU %u: internal error %u", vcpu->index,
		                           run->internal.suberror));
		break;
	default:
		vcpu_exit_handle(vcpu);
	}
}

static uint64_t exit_ip(const struct kvm_run *run)
{
	return vprof_exit_ip(run->exit_reason, run->exit_reason == KVM_EXIT_MMIO ? run->mmio.phys_addr : 0);
}

/*
 * KVM tells no instruction for an access to what is neither RAM nor a device's register by a plain load or store
 * (Documentation/virt/kvm/api.rst, KVM_EXIT_ARM_NISV).
 */
static const char *why_not_run(int failed)
{
	return failed == ENOSYS ? "it accessed, by an instruction that KVM cannot emulate, memory that is not there"
	                        : g_strerror(failed);
}

uint64_t vcpu_arch_handle(struct vcpu *vcpu, int failed)
{
	if (failed == 0) {
		const uint64_t ip = exit_ip(vcpu->run);

		if (!vcpu_patch_exit(vcpu))
			handle_exit(vcpu);
		return ip;
	}
	if (failed != EINTR)
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("cannot run vCPU %u: %s", vcpu->index, why_not_run(failed)));
	return vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0);
}
