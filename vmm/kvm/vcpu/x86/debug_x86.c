// SPDX-License-Identifier: BSD-2-Clause
#include "guest/x86/page_tables_x86.h"
#include "kvm/vcpu/x86/vcpu_x86.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "guest/page_walk.h"
#include "kvm/host/x86/kvm_vcpu.h"
#include "kvm/vcpu/patch.h"
#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vcpu/x86/patch_execute.h"

/* Debug registers (SDM vol. 3B, 17.2). R/W and LEN of an instruction breakpoint are 0. */
#define DR6_BREAKPOINTS UINT64_C(0xf)
#define DR6_BD (UINT64_C(1) << 13)
#define DR6_BT (UINT64_C(1) << 15)
#define DR7_FIXED 0x400u
#define DR7_GLOBAL(n) (UINT64_C(2) << 2 * (n))
#define FLAG_TF UINT64_C(0x100)
#define VECTOR_BP 3u
#define BREAKPOINTS 4u /* SDM vol. 3B, 17.2.1 */
#define INT3 0xccu

#define CR0_PG (UINT64_C(1) << 31)
#define CR4_LA57 (UINT64_C(1) << 12)
/* PTI_USER_PGTABLE_BIT of Linux: with page table isolation, the user's half, which lacks most of the kernel. */
#define CR3_USER_HALF UINT64_C(0x1000)

/* Whether the next instruction is to be a step. */
static bool step_goes_on(const struct vcpu_step *step)
{
	return step->stepper && !step->resting;
}

/* The breakpoint behind a rest, if one is free: puts its address behind `taken` others and returns its DR7. */
static uint64_t step_breakpoint(const struct vcpu_step *step, size_t taken, __u64 addresses[])
{
	if (!step->resting || taken == BREAKPOINTS)
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
	const struct vcpu_debug *debug = &vcpu->debug;
	const struct vcpu_step *step = &vcpu->arch->step;
	uint64_t addresses[GUEST_BREAKPOINT_ADDRESSES_MAX]; /* of which BREAKPOINTS are taken at most */
	size_t n = breakpoints_addresses(&debug->breakpoints, addresses);
	struct kvm_guest_debug wanted = {.control = inject};
	uint64_t dr7 = 0;

	for (size_t i = 0; i < n; i++) {
		wanted.arch.debugreg[i] = addresses[i];
		if (!debug->stepping || addresses[i] != debug->over)
			dr7 |= DR7_GLOBAL(i);
	}
	dr7 |= step_breakpoint(step, n, wanted.arch.debugreg);
	wanted.arch.debugreg[7] = DR7_FIXED | dr7;
	if (n > 0 || dr7 != 0 || debug->stepping || step_goes_on(step))
		wanted.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP;
	if (debug->stepping || step_goes_on(step))
		wanted.control |= KVM_GUESTDBG_SINGLESTEP | vcpu->machine->arch->step_control;
	/* Where there were patches in files, a trap may be left behind. */
	if (breakpoints_patched(&debug->breakpoints) || atomic_load(&vcpu->machine->file_patches.n) > 0)
		wanted.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP;
	return ioctl(vcpu->fd, KVM_SET_GUEST_DEBUG, &wanted) == 0;
}

bool vcpu_arch_debug(struct vcpu *vcpu)
{
	return apply(vcpu, 0);
}

void vcpu_arch_gprs(const struct vcpu *vcpu, struct guest_gprs *gprs)
{
	const struct kvm_regs *regs = &vcpu->run->s.regs.regs;

	gprs->processor = GUEST_X86_64;
#define X(name) gprs->name = regs->name;
	GUEST_GPRS(X)
#undef X
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

bool vcpu_end_step(struct vcpu *vcpu)
{
	struct vcpu_debug *debug = &vcpu->debug;
	struct kvm_regs *regs = &vcpu->run->s.regs.regs;

	if (debug->stepping) {
		debug->stepping = false;
		return apply(vcpu, 0);
	}
	/* KVM would drop the exception with registers that come later (__set_regs). */
	return !(regs->rflags & FLAG_TF) || (ioctl(vcpu->fd, KVM_SET_REGS, regs) == 0 && inject_db(vcpu, DR6_BS));
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
	struct vcpu_debug *debug = &vcpu->debug;
	struct vcpu_step *step = &vcpu->arch->step;
	const struct kvm_debug_exit_arch *exit = &vcpu->run->debug.arch;
	bool hits = (exit->dr6 & DR6_BREAKPOINTS) != 0;
	bool stepped = debug->stepping && (exit->dr6 & DR6_BS) != 0;
	bool rested = step->resting;
	bool ours = step_took(step, exit) || stepped;

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

static void note_msr(const struct kvm_run *run, struct guest_access *access)
{
	access->address = run->msr.index;
	access->bytes = sizeof(run->msr.data);
	access->write = run->exit_reason == KVM_EXIT_X86_WRMSR;
	access->value = run->msr.data;
}

void vcpu_arch_access(const struct kvm_run *run, struct guest_access *access)
{
	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		note_io(run, access);
		break;
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		note_msr(run, access);
		break;
	default:
		break;
	}
}

/* ---- patches ---- */

static bool translate(struct guest *guest, const struct kvm_sregs *sregs, uint64_t cr3, gva_t at, gpa_t *to)
{
	struct page_walk walk;

	page_walk_init(&walk, guest, cr3, (sregs->cr4 & CR4_LA57) != 0);
	return page_walk_translate(&walk, at, to);
}

/* Before its first instruction, a guest that begins without paging has no other addresses than physical ones. */
bool vcpu_arch_translate(struct vcpu *vcpu, gva_t at, gpa_t *to)
{
	struct guest *guest = vcpu->machine->guest;
	struct kvm_sregs sregs;

	if (ioctl(vcpu->fd, KVM_GET_SREGS, &sregs) < 0)
		return false;
	*to = (gpa_t){at.value};
	if (sregs.cr0 & CR0_PG)
		return translate(guest, &sregs, sregs.cr3, at, to) ||
		       translate(guest, &sregs, sregs.cr3 & ~CR3_USER_HALF, at, to);
	return guest->state == GUEST_CREATED;
}

/* KVM leaves in DR6 what the exit before had, where it reports an INT3 (its handle_exception_nmi and bp_interception).
 */
bool vcpu_arch_stepped(struct vcpu *vcpu, int failed)
{
	struct kvm_debug_exit_arch *exit = &vcpu->run->debug.arch;
	const bool debug = failed == 0 && vcpu->run->exit_reason == KVM_EXIT_DEBUG;

	if (debug && exit->exception == VECTOR_BP)
		exit->dr6 = 0;
	return debug && (exit->dr6 & DR6_BS) != 0;
}

/* VMX and SVM intercept it; where CPL 0 is emulated (host_pvm.c), it is what KVM cannot emulate. */
bool vcpu_arch_trapped(const struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	uint8_t bytes[INSTRUCTION_BYTES_MAX];

	switch (run->exit_reason) {
	case KVM_EXIT_DEBUG:
		return run->debug.arch.exception == VECTOR_BP;
	case KVM_EXIT_INTERNAL_ERROR:
		return kvm_failed_instruction(run, bytes) > 0 && bytes[0] == INT3;
	default:
		return false;
	}
}

const struct patch_trap vcpu_arch_trap = {.code = INT3, .bytes = 1};

size_t vcpu_arch_breakpoints(const struct vcpu_machine *machine)
{
	(void)machine;
	return BREAKPOINTS;
}

const char *vcpu_arch_why_no_step(const struct vcpu_machine *machine)
{
	return (machine->arch->step_control & KVM_GUESTDBG_BLOCKIRQ) != 0
	               ? NULL
	               : "this host's KVM lacks KVM_GUESTDBG_BLOCKIRQ (Linux 5.16)";
}

const char *vcpu_arch_why_no_file_patch(const struct vcpu_machine *machine)
{
	return machine->arch->host == HOST_PVM ? "this host's KVM gives the INT3 of a program to the guest" : NULL;
}

const char *vcpu_arch_why_not_executed(const uint8_t *code, size_t n)
{
	return patch_executes(code, n, true)
	               ? NULL
	               : "the instruction there is none of those that are executed in the place of an INT3 (moves, arithmetic with registers, PUSH, POP, NOP, JMP, CALL, RET)";
}

const char *vcpu_arch_why_no_patch(const struct vcpu_machine *machine)
{
	if (machine->arch->host == HOST_PVM && !machine->arch->quirks)
		return "this host's KVM cannot execute INT3 in the guest's kernel, and its quirks are off";
	return vcpu_arch_why_no_step(machine);
}
