// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/vcpu_debug.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/vcpu/vcpu_machine.h"

/* Debug registers (SDM vol. 3B, 17.2). R/W and LEN of an instruction breakpoint are 0. */
#define DR6_BREAKPOINTS UINT64_C(0xf)
#define DR6_BD (UINT64_C(1) << 13)
#define DR6_BT (UINT64_C(1) << 15)
#define DR7_FIXED 0x400u
#define DR7_GLOBAL(n) (UINT64_C(2) << 2 * (n))
#define VECTOR_BP 3u

size_t breakpoints_addresses(const struct breakpoints *breakpoints, uint64_t to[GUEST_BREAKPOINT_ADDRESSES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < breakpoints->n && n < GUEST_BREAKPOINT_ADDRESSES_MAX; i++) {
		size_t known = 0;

		if (breakpoints->all[i]->patched)
			continue;
		while (known < n && to[known] != breakpoints->all[i]->at.value)
			known++;
		if (known == n)
			to[n++] = breakpoints->all[i]->at.value;
	}
	return n;
}

static bool has_patches(const struct breakpoints *breakpoints)
{
	for (size_t i = 0; i < breakpoints->n; i++)
		if (breakpoints->all[i]->patched)
			return true;
	return false;
}

/* Whether the next instruction is to be a step. */
static bool step_goes_on(const struct vcpu_step *step)
{
	return step->stepper && !step->resting;
}

/* The breakpoint behind a rest, if one is free: puts its address behind `taken` others and returns its DR7. */
static uint64_t step_breakpoint(const struct vcpu_step *step, size_t taken, __u64 addresses[])
{
	if (!step->resting || taken == GUEST_BREAKPOINT_ADDRESSES_MAX)
		return 0;
	addresses[taken] = step->until;
	return DR7_GLOBAL(taken);
}

/*
 * Tells KVM what to stop at. A breakpoint stops before its instruction, every time anew, so the way past it is a single
 * step with that breakpoint off; interrupts wait for the step, as an interrupt's return would hit it once more.
 */
static bool apply(struct vcpu *vcpu, uint32_t inject)
{
	const struct vcpu_debug *debug = &vcpu->arch->debug;
	uint64_t addresses[GUEST_BREAKPOINT_ADDRESSES_MAX];
	size_t n = breakpoints_addresses(&debug->breakpoints, addresses);
	struct kvm_guest_debug wanted = {.control = inject};
	uint64_t dr7 = 0;

	for (size_t i = 0; i < n; i++) {
		wanted.arch.debugreg[i] = addresses[i];
		if (!debug->stepping || addresses[i] != debug->over)
			dr7 |= DR7_GLOBAL(i);
	}
	dr7 |= step_breakpoint(&debug->step, n, wanted.arch.debugreg);
	wanted.arch.debugreg[7] = DR7_FIXED | dr7;
	if (n > 0 || dr7 != 0 || debug->stepping || step_goes_on(&debug->step))
		wanted.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP;
	if (debug->stepping || step_goes_on(&debug->step))
		wanted.control |= KVM_GUESTDBG_SINGLESTEP | vcpu->machine->arch->step_control;
	if (has_patches(&debug->breakpoints))
		wanted.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP;
	return ioctl(vcpu->fd, KVM_SET_GUEST_DEBUG, &wanted) == 0;
}

bool vcpu_debug_apply(struct vcpu *vcpu)
{
	return apply(vcpu, 0);
}

bool vcpu_debug_set(struct vcpu *vcpu, const struct breakpoints *breakpoints)
{
	const struct breakpoints before = vcpu->arch->debug.breakpoints;

	vcpu->arch->debug.breakpoints = *breakpoints;
	if (apply(vcpu, 0))
		return true;
	vcpu->arch->debug.breakpoints = before;
	return false;
}

void vcpu_read_gprs(const struct vcpu *vcpu, struct guest_gprs *gprs)
{
	const struct kvm_regs *regs = &vcpu->run->s.regs.regs;

#define X(name) gprs->name = regs->name;
	GUEST_GPRS(X)
#undef X
}

bool vcpu_debug_hit(struct vcpu *vcpu, uint64_t pc)
{
	const struct breakpoints *breakpoints = &vcpu->arch->debug.breakpoints;
	struct guest_gprs gprs;
	bool found = false;

	vcpu_read_gprs(vcpu, &gprs);
	for (size_t i = 0; i < breakpoints->n; i++) {
		struct guest_breakpoint *breakpoint = breakpoints->all[i];

		if (breakpoint->at.value != pc)
			continue;
		breakpoint->hit(breakpoint, vcpu->index, &vcpu->regs, &gprs);
		found = true;
	}
	return found;
}

/* Whether a debug exit is a step's or the end of a rest. */
static bool step_took(struct vcpu_step *step, const struct kvm_debug_exit_arch *exit)
{
	if (!step->stepper)
		return false;
	if (!step->resting)
		return (exit->dr6 & DR6_BS) != 0;
	step->resting = exit->pc != step->until;
	return !step->resting;
}

/*
 * Gives the guest a debug exception of its own. KVM_GUESTDBG_INJECT_DB leaves DR6 as it is; the processor clears the
 * bits of breakpoints that were not hit and none of the others (SDM vol. 3B, 17.2.3).
 */
static bool inject_db(struct vcpu *vcpu, uint64_t dr6)
{
	struct kvm_debugregs registers;

	if (ioctl(vcpu->fd, KVM_GET_DEBUGREGS, &registers) < 0)
		return false;
	registers.dr6 = (registers.dr6 & ~DR6_BREAKPOINTS) | (dr6 & (DR6_BREAKPOINTS | DR6_BD | DR6_BS | DR6_BT));
	return ioctl(vcpu->fd, KVM_SET_DEBUGREGS, &registers) == 0 &&
	       apply(vcpu, KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_INJECT_DB);
}

static bool inject(struct vcpu *vcpu, const struct kvm_debug_exit_arch *exit)
{
	if (exit->exception == VECTOR_BP)
		return apply(vcpu, KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_INJECT_BP);
	return inject_db(vcpu, exit->dr6);
}

/*
 * With breakpoints set, KVM hands us the guest's own debug exceptions too (its handle_exception_nmi and db_interception
 * ask for guest_debug first), and with patches its INT3; they are the guest's.
 */
void vcpu_debug_exit(struct vcpu *vcpu)
{
	struct vcpu_debug *debug = &vcpu->arch->debug;
	const struct kvm_debug_exit_arch *exit = &vcpu->run->debug.arch;
	bool hits = (exit->dr6 & DR6_BREAKPOINTS) != 0;
	bool stepped = debug->stepping && (exit->dr6 & DR6_BS) != 0;
	bool rested = debug->step.resting;
	bool ours = step_took(&debug->step, exit) || stepped;

	if (ours && !stepped && !rested && !hits)
		return; /* and the next step */
	if (stepped)
		debug->stepping = false;
	if (hits && vcpu_debug_hit(vcpu, exit->pc)) {
		debug->stepping = true;
		debug->over = exit->pc;
		ours = true;
	}
	if (!(ours ? apply(vcpu, 0) : inject(vcpu, exit)))
		vcpu_crash(
			vcpu, GUEST_END_VMM_ERROR,
			g_strdup_printf("cannot set the breakpoints of vCPU %u: %s", vcpu->index, g_strerror(errno)));
}

static void note_io(const struct kvm_run *run, struct guest_access *access)
{
	access->address = run->io.port;
	access->bytes = run->io.size;
	access->count = run->io.count;
	access->write = run->io.direction == KVM_EXIT_IO_OUT;
	memcpy(&access->value, (const uint8_t *)run + run->io.data_offset, MIN(run->io.size, sizeof(access->value)));
}

static void note_mmio(const struct kvm_run *run, struct guest_access *access)
{
	access->address = run->mmio.phys_addr;
	access->bytes = (uint8_t)run->mmio.len;
	access->write = run->mmio.is_write;
	memcpy(&access->value, run->mmio.data, MIN(run->mmio.len, sizeof(access->value)));
}

static void note_msr(const struct kvm_run *run, struct guest_access *access)
{
	access->address = run->msr.index;
	access->bytes = sizeof(run->msr.data);
	access->write = run->exit_reason == KVM_EXIT_X86_WRMSR;
	access->value = run->msr.data;
}

static void note(const struct kvm_run *run, struct guest_access *access)
{
	*access = (struct guest_access){.reason = run->exit_reason, .count = 1};
	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		note_io(run, access);
		break;
	case KVM_EXIT_MMIO:
		note_mmio(run, access);
		break;
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		note_msr(run, access);
		break;
	default:
		break;
	}
}

void vcpu_observe_exit(struct vcpu *vcpu, bool interrupted)
{
	vcpu_read_gprs(vcpu, &vcpu->arch->debug.gprs);
	if (interrupted)
		vcpu->arch->debug.access = (struct guest_access){.reason = KVM_EXIT_INTR, .count = 1};
	else
		note(vcpu->run, &vcpu->arch->debug.access);
}

void vcpu_observe_handled(struct vcpu *vcpu)
{
	struct vcpu_debug *debug = &vcpu->arch->debug;

	if (debug->access.bytes != 0 && !debug->access.write)
		note(vcpu->run, &debug->access); /* what was read */
	for (size_t i = 0; i < debug->observers.n; i++) {
		struct guest_observer *observer = debug->observers.all[i];

		observer->exited(observer, vcpu->index, &debug->access, &vcpu->regs, &debug->gprs);
	}
}
