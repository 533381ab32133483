// SPDX-License-Identifier: BSD-2-Clause
/* Breakpoints, patches and steps (Arm ARM, D2; Documentation/virt/kvm/api.rst, KVM_SET_GUEST_DEBUG). */
#include <inttypes.h>
#include <sys/ioctl.h>

#include "guest/page_walk.h"
#include "kvm/vcpu/arm64/vcpu_arm64.h"
#include "kvm/vcpu/patch.h"
#include "kvm/vcpu/vcpu_machine.h"

/* DBGBCR_EL1 (Arm ARM, D19.3.2): enabled, at EL1 and EL0, on all bytes of the instruction. */
#define BREAKPOINT_CONTROL (UINT64_C(15) << 5 | UINT64_C(3) << 1 | 1)
/* Classes of ESR_EL2 (Arm ARM, D19.2.39). */
#define CLASS(esr) ((esr) >> 26 & 63)
enum { CLASS_BREAKPOINT = 0x30, CLASS_STEP = 0x32, CLASS_BRK = 0x3c };

/* BRK, with a number that neither Linux nor compilers use. */
const struct patch_trap vcpu_arch_trap = {.code = UINT32_C(0xd4200000) | 0x7670u << 5, .bytes = 4};

size_t vcpu_arch_breakpoints(const struct vcpu_machine *machine)
{
	return machine->arch->breakpoints;
}

const char *vcpu_arch_why_no_step(const struct vcpu_machine *machine)
{
	return machine->arch->debugs ? NULL : "this host's KVM lacks KVM_CAP_SET_GUEST_DEBUG";
}

const char *vcpu_arch_why_no_patch(const struct vcpu_machine *machine)
{
	return vcpu_arch_why_no_step(machine);
}

/* A breakpoint stops before its instruction, every time anew, so the way past it is a step with that breakpoint off. */
bool vcpu_arch_debug(struct vcpu *vcpu)
{
	const struct vcpu_debug *debug = &vcpu->debug;
	uint64_t addresses[GUEST_BREAKPOINT_ADDRESSES_MAX];
	const size_t n = breakpoints_addresses(&debug->breakpoints, addresses);
	struct kvm_guest_debug wanted = {.control = 0};

	for (size_t i = 0; i < n; i++) {
		wanted.arch.dbg_bvr[i] = addresses[i];
		if (!debug->stepping || addresses[i] != debug->over)
			wanted.arch.dbg_bcr[i] = BREAKPOINT_CONTROL;
	}
	if (n > 0)
		wanted.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW;
	if (debug->stepping || vcpu->arch->step.stepper)
		wanted.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_SINGLESTEP;
	if (breakpoints_patched(&debug->breakpoints))
		wanted.control |= KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP;
	return ioctl(vcpu->fd, KVM_SET_GUEST_DEBUG, &wanted) == 0;
}

void vcpu_arch_access(const struct kvm_run *run, struct guest_access *access)
{
	(void)run;
	(void)access;
}

bool vcpu_arch_translate(struct vcpu *vcpu, gva_t at, gpa_t *to)
{
	struct guest_regs regs;
	struct page_walk walk;

	vcpu_read_registers(vcpu, &regs);
	page_walk_init_regs(&walk, vcpu->machine->guest, &regs);
	return regs.valid && page_walk_translate(&walk, at, to);
}

static bool is_debug_exit(const struct vcpu *vcpu, uint32_t class)
{
	return vcpu->run->exit_reason == KVM_EXIT_DEBUG && CLASS(vcpu->run->debug.arch.hsr) == class;
}

bool vcpu_arch_stepped(struct vcpu *vcpu, int failed)
{
	return failed == 0 && is_debug_exit(vcpu, CLASS_STEP);
}

bool vcpu_arch_trapped(const struct vcpu *vcpu)
{
	return is_debug_exit(vcpu, CLASS_BRK);
}

bool vcpu_arch_execute(struct vcpu *vcpu, const uint8_t *place)
{
	(void)vcpu;
	(void)place;
	return false;
}

/* Probes of programs are for x86-64. */
const char *vcpu_arch_why_no_file_patch(const struct vcpu_machine *machine)
{
	(void)machine;
	return "there are none on arm64";
}

const char *vcpu_arch_why_not_executed(const uint8_t *code, size_t n)
{
	(void)code;
	(void)n;
	return NULL;
}

bool vcpu_arch_execute_in_program(struct vcpu *vcpu, const struct file_code *code)
{
	(void)vcpu;
	(void)code;
	return false;
}

/*
 * The step over a breakpoint is done. An interrupt may have come instead, as KVM does not hold them back: its return
 * leads to the breakpoint once more.
 */
static void stepped_over(struct vcpu *vcpu)
{
	struct vcpu_debug *debug = &vcpu->debug;

	debug->stepping = false;
	if (!vcpu_was_diverted(vcpu, vcpu->regs.arm64.pc, debug->over))
		return;
	debug->again = debug->over;
	debug->again_stack = debug->over_stack;
}

static bool handle(struct vcpu *vcpu, GError **error)
{
	struct vcpu_debug *debug = &vcpu->debug;
	const uint64_t pc = vcpu->regs.arm64.pc;

	if (is_debug_exit(vcpu, CLASS_STEP)) {
		if (debug->stepping)
			stepped_over(vcpu);
	} else if (!is_debug_exit(vcpu, CLASS_BREAKPOINT)) {
		return vcpu_enter_exception(vcpu, vcpu->run->debug.arch.hsr, error);
	} else if (vcpu_debug_hit(vcpu, pc)) {
		debug->stepping = true;
		debug->over = pc;
	}
	return vcpu_arch_debug(vcpu) || vcpu_fail(vcpu, "set the breakpoints", error);
}

/* While any are set, the guest's own BRK comes here, too: it is the guest's. */
void vcpu_debug_exit(struct vcpu *vcpu)
{
	g_autoptr(GError) error = NULL;

	if (!handle(vcpu, &error))
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR, g_strdup(error->message));
}

/* ---- steps ---- */

bool vcpu_arch_step(struct vcpu *vcpu, struct guest_stepper *stepper)
{
	const struct vcpu_step before = vcpu->arch->step;

	vcpu->arch->step.stepper = stepper;
	vcpu_read_registers(vcpu, &vcpu->arch->step.at);
	if (vcpu_arch_debug(vcpu))
		return true;
	vcpu->arch->step = before;
	return false;
}

/* STXR, STLXR and those of a pair (Arm ARM, C4.1): a step before them has made them fail, and their loop never ends. */
static bool is_store_exclusive(uint32_t code)
{
	return (code & 0x3fe00000u) == 0x08000000u || (code & 0xbfe00000u) == 0x88200000u;
}

static bool fails_when_stepped(struct vcpu *vcpu)
{
	struct page_walk walk;
	uint32_t code;

	page_walk_init_regs(&walk, vcpu->machine->guest, &vcpu->regs);
	return page_walk_read(&walk, (gva_t){vcpu->regs.arm64.pc}, &code, sizeof(code)) && is_store_exclusive(code);
}

void vcpu_step_exited(struct vcpu *vcpu, int failed)
{
	struct vcpu_step *step = &vcpu->arch->step;

	if (G_LIKELY(!step->stepper) || !vcpu_arch_stepped(vcpu, failed))
		return;
	if (step->at.valid && !vcpu_was_diverted(vcpu, vcpu->regs.arm64.pc, step->at.arm64.pc))
		step->stepper->stepped(step->stepper, vcpu->index, &step->at);
	step->at = vcpu->regs;
	if (fails_when_stepped(vcpu))
		vcpu_crash(
			vcpu, GUEST_END_VMM_ERROR,
			g_strdup_printf(
				"cannot count the instructions of vCPU %u exactly: at 0x%" PRIx64
				" it stores exclusively (STXR), which fails after a step; build the guest for Armv8.1 (atomic instructions), or sample it instead (omit --exact)",
				vcpu->index, vcpu->regs.arm64.pc));
}
