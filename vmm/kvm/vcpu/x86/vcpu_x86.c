// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/vcpu_x86.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <vprof/exit.h>

#include "kvm/device/devices.h"
#include "kvm/host/x86/host_quirks.h"
#include "kvm/host/x86/kvm_vcpu.h"
#include "kvm/vcpu/vcpu_arch.h"
#include "kvm/vcpu/vcpu_exit.h"
#include "kvm/vcpu/x86/vcpu_pmu.h"
#include "kvm/vcpu/x86/vcpu_step.h"

#define MSR_IA32_MISC_ENABLE 0x1a0u
#define MISC_ENABLE_FAST_STRING 1u

/* Local vector table entries of the APIC (SDM vol. 3A, 11.5.1): offset, delivery mode in bits 10:8. */
#define APIC_LVT0 0x350u
#define APIC_LVT1 0x360u
#define APIC_DELIVERY_MASK 0x700u
#define APIC_DELIVERY_NMI 0x400u
#define APIC_DELIVERY_EXTINT 0x700u

/* As a PC's firmware leaves it: the PIC behind LINT0, NMI on LINT1. */
static bool set_interrupt_pins(struct vcpu *vcpu, GError **error)
{
	struct kvm_lapic_state lapic;

	if (ioctl(vcpu->fd, KVM_GET_LAPIC, &lapic) < 0)
		return vcpu_fail(vcpu, "read the APIC", error);
	static const struct {
		size_t offset;
		uint32_t delivery;
	} pins[] = {{APIC_LVT0, APIC_DELIVERY_EXTINT}, {APIC_LVT1, APIC_DELIVERY_NMI}};
	for (size_t i = 0; i < G_N_ELEMENTS(pins); i++) {
		uint32_t entry;

		memcpy(&entry, lapic.regs + pins[i].offset, sizeof(entry));
		entry = (entry & ~APIC_DELIVERY_MASK) | pins[i].delivery;
		memcpy(lapic.regs + pins[i].offset, &entry, sizeof(entry));
	}
	if (ioctl(vcpu->fd, KVM_SET_LAPIC, &lapic) < 0)
		return vcpu_fail(vcpu, "set the APIC", error);
	return true;
}

bool vcpu_misc_enable(struct vcpu *vcpu, uint64_t bits, GError **error)
{
	uint64_t value;

	if (!kvm_msr_get(vcpu->fd, MSR_IA32_MISC_ENABLE, &value))
		return vcpu_fail(vcpu, "read MSR 0x1a0", error);
	if (!kvm_msr_set(vcpu->fd, MSR_IA32_MISC_ENABLE, value | bits))
		return vcpu_fail(vcpu, "set MSR 0x1a0", error);
	return true;
}

bool vcpu_arch_init(struct vcpu *vcpu, GError **error)
{
	if (ioctl(vcpu->fd, KVM_SET_CPUID2, vcpu->arch->cpuid) < 0)
		return vcpu_fail(vcpu, "set the CPUID", error);
	/* Firmware turns fast strings on, and Linux drops REP_GOOD and ERMS without. */
	if (!set_interrupt_pins(vcpu, error) || !vcpu_misc_enable(vcpu, MISC_ENABLE_FAST_STRING, error))
		return false;
	vcpu->run->kvm_valid_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
	return true;
}

void vcpu_arch_deinit(struct vcpu *vcpu)
{
	if (!vcpu->arch)
		return;
	vcpu_pmu_deinit(vcpu);
	g_clear_pointer(&vcpu->arch, g_free);
}

void vcpu_arch_attach(struct vcpu *vcpu)
{
	if (vcpu->arch->pmu)
		vcpu_pmu_attach(vcpu, VCPU_KICK_SIGNAL);
}

void vcpu_arch_detach(struct vcpu *vcpu)
{
	if (vcpu->arch->pmu)
		vcpu_pmu_detach(vcpu);
}

void vcpu_arch_enter(struct vcpu *vcpu)
{
	if (vcpu->arch->pmu)
		vcpu_pmu_enter(vcpu);
}

void vcpu_arch_left(struct vcpu *vcpu, int failed)
{
	if (vcpu->arch->pmu)
		vcpu_pmu_left(vcpu, failed == EINTR);
}

void vcpu_arch_look(struct vcpu *vcpu, int failed)
{
	vcpu_read_registers(vcpu, &vcpu->regs);
	vcpu_keep_registers(vcpu);
	vcpu_patch_returned(vcpu, failed);
}

void vcpu_arch_exited(struct vcpu *vcpu, int failed)
{
	vcpu_observe_exit(vcpu, failed != 0);
	if (G_UNLIKELY(vcpu->arch->step.stepper))
		vcpu_step_exited(vcpu, failed != 0);
}

static void handle_io(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	uint8_t *data = (uint8_t *)vcpu->run + run->io.data_offset;

	for (uint32_t i = 0; i < run->io.count; i++, data += run->io.size) {
		if (run->io.direction == KVM_EXIT_IO_OUT)
			devices_write(vcpu->machine->devices, vcpu->index, run->io.port, data, run->io.size);
		else
			devices_read(vcpu->machine->devices, run->io.port, data, run->io.size);
	}
}

/* Does what KVM would have done. */
static void handle_msr(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	uint64_t value = 0;
	bool done;

	if (run->exit_reason == KVM_EXIT_X86_RDMSR) {
		done = kvm_msr_get(vcpu->fd, run->msr.index, &value);
		run->msr.data = value;
	} else {
		done = kvm_msr_set(vcpu->fd, run->msr.index, run->msr.data);
	}
	run->msr.error = !done; /* not 0: #GP */
}

static void handle_internal_error(struct vcpu *vcpu)
{
	static const char *const names[] = {[KVM_INTERNAL_ERROR_EMULATION] = "an instruction that it cannot emulate",
	                                    [KVM_INTERNAL_ERROR_SIMUL_EX] = "two exceptions at once",
	                                    [KVM_INTERNAL_ERROR_DELIVERY_EV] = "an exit while delivering an event",
	                                    [KVM_INTERNAL_ERROR_UNEXPECTED_EXIT_REASON] = "an exit it does not know"};
	uint32_t suberror = vcpu->run->internal.suberror;
	const char *name = suberror < G_N_ELEMENTS(names) ? names[suberror] : NULL;

	vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
	           g_strdup_printf("KVM gave up on vCPU %u: internal error %u (%s)", vcpu->index, suberror,
	                           name ? name : "unknown"));
}

static void handle_exit(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;

	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		handle_io(vcpu);
		break;
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		handle_msr(vcpu);
		break;
	case KVM_EXIT_DEBUG:
		vcpu_debug_exit(vcpu);
		break;
	case KVM_EXIT_IRQ_WINDOW_OPEN:
		break;
	case KVM_EXIT_SHUTDOWN:
		vcpu_crash(vcpu, GUEST_END_TRIPLE_FAULT, g_strdup_printf("triple fault on vCPU %u", vcpu->index));
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		handle_internal_error(vcpu);
		break;
	default:
		vcpu_exit_handle(vcpu);
	}
}

/* What the exit is filed under (vprof/exit.h). To be read before it is handled, which reuses kvm_run. */
static uint64_t exit_ip(const struct kvm_run *run)
{
	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		return vprof_exit_ip(KVM_EXIT_IO, run->io.port);
	case KVM_EXIT_MMIO:
		return vprof_exit_ip(KVM_EXIT_MMIO, run->mmio.phys_addr);
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		return vprof_exit_ip(run->exit_reason, run->msr.index);
	case KVM_EXIT_INTERNAL_ERROR:
		return vprof_exit_ip(KVM_EXIT_INTERNAL_ERROR, run->internal.suberror);
	default:
		return vprof_exit_ip(run->exit_reason, 0);
	}
}

static bool quirks_exit(struct vcpu *vcpu)
{
	const struct vcpu_machine *machine = vcpu->machine;
	const struct host_vcpu at = {
		.index = vcpu->index, .fd = vcpu->fd, .schedstat_fd = vcpu->clocks.schedstat_fd, .run = vcpu->run};

	return machine->arch->quirks && machine->arch->quirks->exit(machine->arch->quirk_state, &at);
}

uint64_t vcpu_arch_handle(struct vcpu *vcpu, int failed)
{
	uint64_t ip = vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0);

	if (failed == 0) {
		ip = exit_ip(vcpu->run);
		if (!vcpu_patch_exit(vcpu) && !quirks_exit(vcpu) && !(vcpu->arch->pmu && vcpu_pmu_exit(vcpu)))
			handle_exit(vcpu);
	} else if (failed != EINTR) {
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("cannot run vCPU %u: %s", vcpu->index, g_strerror(failed)));
	}
	if (vcpu->arch->pmu)
		vcpu_pmu_handled(vcpu);
	return ip;
}

static void handled_step(struct vcpu *vcpu)
{
	struct guest_regs now;

	vcpu_read_registers(vcpu, &now);
	if (!vcpu_step_handled(vcpu, &now))
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("cannot let vCPU %u halt: %s", vcpu->index, g_strerror(errno)));
}

void vcpu_arch_handled(struct vcpu *vcpu)
{
	vcpu_observe_handled(vcpu);
	if (G_UNLIKELY(vcpu->arch->step.stepper))
		handled_step(vcpu);
}

void vcpu_arch_counters(const struct vcpu *vcpu, struct guest_vcpu_time *out)
{
	if (vcpu->arch->pmu)
		vcpu_pmu_counters(vcpu, out);
}

void vcpu_arch_reset(struct vcpu *vcpu)
{
	if (vcpu->arch->pmu)
		vcpu_pmu_reset(vcpu);
}
