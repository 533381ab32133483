// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_step.h"

#include "guest/page_walk.h"
#include "kvm/vcpu/vcpu_debug.h"
#include "kvm/vcpu/vcpu_machine.h"

bool vcpu_step_set(struct vcpu *vcpu, struct guest_stepper *stepper)
{
	const struct vcpu_step before = vcpu->debug.step;

	vcpu->debug.step = (struct vcpu_step){.stepper = stepper};
	if (vcpu_debug_apply(vcpu))
		return true;
	vcpu->debug.step = before;
	return false;
}

/* What an instruction of the kernel does beside what they all do. */
enum kind { KIND_ANY, KIND_HALTS, KIND_RETURNS };

static bool iret_leaves(struct page_walk *walk, const struct guest_regs *at)
{
	uint16_t cs;

	return page_walk_read(walk, (gva_t){at->rsp + sizeof(uint64_t)}, &cs, sizeof(cs)) && (cs & 3) != 0;
}

/* HLT (f4), and the ways to CPL 3: IRETQ (48 cf) with a frame of there, SYSRETQ (48 0f 07). */
static enum kind kind_of(struct vcpu *vcpu, const struct guest_regs *at)
{
	struct page_walk walk;
	uint8_t code[3] = {0};

	page_walk_init(&walk, vcpu->machine->guest, at->cr3, at->la57);
	for (size_t i = 0; i < sizeof(code); i++)
		if (!page_walk_read(&walk, (gva_t){at->rip + i}, &code[i], 1))
			break;
	if (code[0] == 0xf4)
		return KIND_HALTS;
	if (code[0] != 0x48)
		return KIND_ANY;
	if (code[1] == 0xcf)
		return iret_leaves(&walk, at) ? KIND_RETURNS : KIND_ANY;
	return code[1] == 0x0f && code[2] == 0x07 ? KIND_RETURNS : KIND_ANY;
}

/* A host that cannot step CPL 3 stops again behind the kernel's first instruction, of an exception or a system call. */
static void user_mode_exited(struct vcpu *vcpu, bool stepped)
{
	struct vcpu_step *step = &vcpu->debug.step;

	if (stepped && vcpu->regs.cpl != 0) {
		if (step->at.cpl != 0)
			step->stepper->stepped(step->stepper, vcpu->index, &step->at);
		return;
	}
	step->stepper->ran(step->stepper, vcpu->index);
	if (stepped)
		step->stepper->stepped(step->stepper, vcpu->index, &vcpu->regs);
}

/*
 * An instruction is over when KVM says so, or when it has left the guest as the last thing it did (OUT, a write to a
 * device), which KVM does not call a step.
 */
void vcpu_step_exited(struct vcpu *vcpu, bool interrupted)
{
	struct vcpu_step *step = &vcpu->debug.step;
	const struct guest_regs *at = &step->at;
	bool stepped =
		!interrupted && vcpu->run->exit_reason == KVM_EXIT_DEBUG && (vcpu->run->debug.arch.dr6 & DR6_BS) != 0;
	enum kind kind = KIND_ANY;

	if (!step->entered || step->resting || !(stepped || vcpu->regs.rip != at->rip) || !at->valid)
		return;
	if (at->cpl == 0) {
		kind = kind_of(vcpu, at);
		step->stepper->stepped(step->stepper, vcpu->index, at);
	}
	if (at->cpl != 0 || kind == KIND_RETURNS)
		user_mode_exited(vcpu, stepped);
	step->halted = stepped && kind == KIND_HALTS;
}

/* The VMM may have executed an instruction itself (host_pvm_emulate.c). */
bool vcpu_step_handled(struct vcpu *vcpu, const struct guest_regs *now)
{
	struct vcpu_step *step = &vcpu->debug.step;

	if (!step->resting && step->entered && vcpu->regs.valid && vcpu->regs.cpl == 0 && now->rip != vcpu->regs.rip)
		step->stepper->stepped(step->stepper, vcpu->index, &vcpu->regs);
	step->at = *now;
	step->entered = true;
	if (!step->halted)
		return true;
	step->halted = false;
	step->resting = true;
	step->until = now->rip;
	return vcpu_debug_apply(vcpu);
}
