// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/vcpu_step.h"

#include <inttypes.h>

#include "guest/page_walk.h"
#include "guest/x86/page_tables_x86.h"
#include "kvm/vcpu/vcpu_machine.h"

bool vcpu_arch_step(struct vcpu *vcpu, struct guest_stepper *stepper)
{
	const struct vcpu_step before = vcpu->arch->step;

	vcpu->arch->step = (struct vcpu_step){.stepper = stepper};
	if (vcpu_arch_debug(vcpu))
		return true;
	vcpu->arch->step = before;
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
	struct vcpu_step *step = &vcpu->arch->step;

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
	struct vcpu_step *step = &vcpu->arch->step;
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

#define GATE_BYTES 16u
#define GATES_MAX 256u
#define GATE_TYPE 5u /* the byte of a gate that has its bit P (SDM vol. 3A, 6.14.1) */
#define GATE_PRESENT 0x80u

/* A vector that has a gate; -1: none has, so that an exception ends the guest. */
static int gate_find(struct vcpu *vcpu, const struct guest_regs *now)
{
	const struct kvm_dtable *idt = &vcpu->run->s.regs.sregs.idt;
	const unsigned n = MIN((idt->limit + 1u) / GATE_BYTES, GATES_MAX);
	uint8_t gates[GATES_MAX * GATE_BYTES];
	struct page_walk walk;

	page_walk_init(&walk, vcpu->machine->guest, now->cr3, now->la57);
	if (!page_walk_read(&walk, (gva_t){idt->base}, gates, (size_t)n * GATE_BYTES))
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (gates[i * GATE_BYTES + GATE_TYPE] & GATE_PRESENT)
			return (int)i;
	return -1;
}

/*
 * The processor clears TF where it enters the kernel (SDM vol. 3A, 6.12.1.3; SYSCALL by its mask), and nothing that it
 * executes from there to the return is a step. A count must not be short, so there may be no way in. What there is, as
 * a new string, or NULL.
 */
static char *step_loses(struct vcpu *vcpu, const struct guest_regs *now)
{
	if (now->cpl != 0)
		return g_strdup_printf("it runs user space at 0x%" PRIx64, now->rip);
	int vector = gate_find(vcpu, now);

	return vector < 0 ? NULL : g_strdup_printf("its IDT has a gate for vector %d", vector);
}

/*
 * Where the processor runs the guest, KVM steps by RFLAGS.TF, and its emulator writes RFLAGS without it
 * (__kvm_set_rflags in arch/x86/kvm/x86.c keeps it only at the address where the step was asked for). Which
 * instructions it emulates, it does not say: each step is asked for anew.
 */
static bool step_again(struct vcpu *vcpu, const struct guest_regs *now)
{
	if (vcpu->machine->arch->quirks)
		return true;
	g_autofree char *why = step_loses(vcpu, now);

	if (!why)
		return vcpu->arch->step.resting || vcpu_arch_debug(vcpu);
	vcpu_crash(
		vcpu, GUEST_END_VMM_ERROR,
		g_strdup_printf(
			"cannot count the instructions of vCPU %u exactly: %s, and this host does not step entries into the kernel; sample it instead (omit --exact)",
			vcpu->index, why));
	return true;
}

/* The VMM may have executed an instruction itself (host_pvm_emulate.c). */
bool vcpu_step_handled(struct vcpu *vcpu, const struct guest_regs *now)
{
	struct vcpu_step *step = &vcpu->arch->step;

	if (!step->resting && step->entered && vcpu->regs.valid && vcpu->regs.cpl == 0 && now->rip != vcpu->regs.rip)
		step->stepper->stepped(step->stepper, vcpu->index, &vcpu->regs);
	step->at = *now;
	step->entered = true;
	if (!step->halted)
		return step_again(vcpu, now);
	step->halted = false;
	step->resting = true;
	step->until = now->rip;
	return vcpu_arch_debug(vcpu);
}
