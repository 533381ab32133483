// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kvm/host/host.h"
#include "kvm/host/kvm_vcpu.h"
#include "kvm/vcpu/vcpu_machine.h"

#define MSR_IA32_MISC_ENABLE 0x1a0u
#define MISC_ENABLE_FAST_STRING 1u

/* After INIT (SDM vol. 3A, table 10-1; APM vol. 2, table 14-1). */
#define INIT_RIP UINT64_C(0xfff0)
#define INIT_CS_BASE UINT64_C(0xffff0000)
#define CR0_PE UINT64_C(1)

/* Local vector table entries of the APIC (SDM vol. 3A, 11.5.1): offset, delivery mode in bits 10:8. */
#define APIC_LVT0 0x350u
#define APIC_LVT1 0x360u
#define APIC_DELIVERY_MASK 0x700u
#define APIC_DELIVERY_NMI 0x400u
#define APIC_DELIVERY_EXTINT 0x700u

struct vcpu_request {
	void (*fn)(void *data);
	void *data;
	bool done, ran;
};

static bool fail(GError **error, const char *what, unsigned index)
{
	g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot %s of vCPU %u: %s", what, index, g_strerror(errno));
	return false;
}

/* As a PC's firmware leaves it: the PIC behind LINT0, NMI on LINT1. */
static bool set_interrupt_pins(struct vcpu *vcpu, GError **error)
{
	struct kvm_lapic_state lapic;

	if (ioctl(vcpu->fd, KVM_GET_LAPIC, &lapic) < 0)
		return fail(error, "read the APIC", vcpu->index);
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
		return fail(error, "set the APIC", vcpu->index);
	return true;
}

bool vcpu_misc_enable(struct vcpu *vcpu, uint64_t bits, GError **error)
{
	uint64_t value;

	if (!kvm_msr_get(vcpu->fd, MSR_IA32_MISC_ENABLE, &value))
		return fail(error, "read MSR 0x1a0", vcpu->index);
	if (!kvm_msr_set(vcpu->fd, MSR_IA32_MISC_ENABLE, value | bits))
		return fail(error, "set MSR 0x1a0", vcpu->index);
	return true;
}

static bool create(struct vcpu *vcpu, const struct kvm_cpuid2 *cpuid, GError **error)
{
	vcpu->fd = ioctl(vcpu->machine->fd, KVM_CREATE_VCPU, vcpu->index);
	if (vcpu->fd < 0)
		return fail(error, "create the KVM side", vcpu->index);
	int bytes = ioctl(vcpu->machine->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (bytes < (int)sizeof(struct kvm_run))
		return fail(error, "learn the size of kvm_run", vcpu->index);
	void *run = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);
	if (run == MAP_FAILED)
		return fail(error, "map kvm_run", vcpu->index);
	vcpu->run = run;
	vcpu->run_bytes = (size_t)bytes;
	if (ioctl(vcpu->fd, KVM_SET_CPUID2, cpuid) < 0)
		return fail(error, "set the CPUID", vcpu->index);
	return true;
}

bool vcpu_init(struct vcpu *vcpu, struct vcpu_machine *machine, unsigned index, const struct kvm_cpuid2 *cpuid,
               GError **error)
{
	*vcpu = (struct vcpu){.machine = machine, .index = index, .fd = -1, .gone = true, .attention = true};
	vcpu->clocks.statistics_fd = vcpu->clocks.schedstat_fd = -1;
	pthread_mutex_init(&vcpu->lock, NULL);
	pthread_cond_init(&vcpu->changed, NULL);
	/* Firmware turns fast strings on, and Linux drops REP_GOOD and ERMS without. */
	if (!create(vcpu, cpuid, error) || !set_interrupt_pins(vcpu, error) ||
	    !vcpu_misc_enable(vcpu, MISC_ENABLE_FAST_STRING, error)) {
		vcpu_deinit(vcpu);
		return false;
	}
	vcpu->run->kvm_valid_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
	vcpu_time_init(&vcpu->clocks, vcpu->fd, index == 0);
	return true;
}

void vcpu_deinit(struct vcpu *vcpu)
{
	vcpu_time_deinit(&vcpu->clocks);
	if (vcpu->run)
		munmap(vcpu->run, vcpu->run_bytes);
	if (vcpu->fd >= 0)
		close(vcpu->fd);
	pthread_cond_destroy(&vcpu->changed);
	pthread_mutex_destroy(&vcpu->lock);
}

bool vcpu_get_sregs(struct vcpu *vcpu, struct kvm_sregs *sregs, GError **error)
{
	return ioctl(vcpu->fd, KVM_GET_SREGS, sregs) == 0 || fail(error, "read the system registers", vcpu->index);
}

bool vcpu_set_registers(struct vcpu *vcpu, const struct kvm_regs *regs, const struct kvm_sregs *sregs, GError **error)
{
	if (ioctl(vcpu->fd, KVM_SET_SREGS, sregs) < 0)
		return fail(error, "set the system registers", vcpu->index);
	if (ioctl(vcpu->fd, KVM_SET_REGS, regs) < 0)
		return fail(error, "set the registers", vcpu->index);
	return true;
}

static void set_attention(struct vcpu *vcpu)
{
	atomic_store_explicit(&vcpu->attention, true, memory_order_release);
}

static void interrupt(struct vcpu *vcpu)
{
	set_attention(vcpu);
	pthread_cond_broadcast(&vcpu->changed);
	if (!vcpu->gone && !pthread_equal(vcpu->thread, pthread_self()))
		pthread_kill(vcpu->thread, VCPU_KICK_SIGNAL);
}

void vcpu_kick(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	interrupt(vcpu);
	pthread_mutex_unlock(&vcpu->lock);
}

void vcpu_go(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	vcpu->go = true;
	interrupt(vcpu);
	pthread_mutex_unlock(&vcpu->lock);
}

bool vcpu_run_on(struct vcpu *vcpu, void (*fn)(void *data), void *data)
{
	struct vcpu_request request = {.fn = fn, .data = data};

	pthread_mutex_lock(&vcpu->lock);
	while (vcpu->request && !vcpu->gone)
		pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	if (!vcpu->gone) {
		vcpu->request = &request;
		interrupt(vcpu);
		while (!request.done)
			pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	}
	pthread_mutex_unlock(&vcpu->lock);
	return request.ran;
}

void vcpu_keep_registers(struct vcpu *vcpu)
{
	const struct kvm_sync_regs *now = &vcpu->run->s.regs;

	if (vcpu->run->exit_reason != KVM_EXIT_SHUTDOWN)
		vcpu->last = (struct vcpu_registers){.valid = true, .regs = now->regs, .sregs = now->sregs};
}

bool vcpu_was_reset(const struct vcpu *vcpu)
{
	const struct kvm_sync_regs *now = &vcpu->run->s.regs;

	return vcpu->run->exit_reason == KVM_EXIT_SHUTDOWN && now->regs.rip == INIT_RIP &&
	       now->sregs.cs.base == INIT_CS_BASE && !(now->sregs.cr0 & CR0_PE);
}

void vcpu_crash(struct vcpu *vcpu, enum guest_end_reason reason, char *message)
{
	vcpu->machine->ops->crashed(vcpu, reason, message);
}

static bool ending(const struct vcpu *vcpu)
{
	return atomic_load_explicit(&vcpu->machine->ending, memory_order_acquire);
}

void vcpu_hold(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	interrupt(vcpu);
	while (!vcpu->outside && !vcpu->gone && !ending(vcpu))
		pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	pthread_mutex_unlock(&vcpu->lock);
}

void vcpu_unhold(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	pthread_cond_broadcast(&vcpu->changed);
	pthread_mutex_unlock(&vcpu->lock);
}

/* Ends the request under way. Lock held. */
static void complete_request(struct vcpu *vcpu, bool ran)
{
	if (!vcpu->request)
		return;
	vcpu->request->ran = ran;
	vcpu->request->done = true;
	vcpu->request = NULL;
	pthread_cond_broadcast(&vcpu->changed);
}

/* Whether another vCPU runs alone. */
static bool is_held(const struct vcpu *vcpu)
{
	const struct vcpu *alone = atomic_load(&vcpu->machine->alone);

	return alone && alone != vcpu;
}

static void wait_outside(struct vcpu *vcpu)
{
	vcpu->outside = true;
	pthread_cond_broadcast(&vcpu->changed);
	pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	vcpu->outside = false;
}

/* Serves requests, and waits while the VM is not started or another vCPU is alone. False when the guest has ended. */
static bool attend(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	while (!ending(vcpu)) {
		struct vcpu_request *request = vcpu->request;

		if (request) {
			pthread_mutex_unlock(&vcpu->lock);
			request->fn(request->data);
			pthread_mutex_lock(&vcpu->lock);
			complete_request(vcpu, true);
		} else if (vcpu->go && !is_held(vcpu)) {
			atomic_store_explicit(&vcpu->attention, false, memory_order_relaxed);
			break;
		} else {
			wait_outside(vcpu);
		}
	}
	pthread_mutex_unlock(&vcpu->lock);
	return !ending(vcpu);
}

bool vcpu_may_enter(struct vcpu *vcpu)
{
	if (G_LIKELY(!atomic_load_explicit(&vcpu->attention, memory_order_acquire)))
		return true;
	bool goes_on = attend(vcpu);
	vcpu_time_attended(&vcpu->clocks);
	return goes_on;
}

void vcpu_leave(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	vcpu_time_finish(&vcpu->clocks);
	vcpu->gone = true;
	complete_request(vcpu, false);
	pthread_cond_broadcast(&vcpu->changed);
	pthread_mutex_unlock(&vcpu->lock);
}
