// SPDX-License-Identifier: BSD-2-Clause
/* The instruction behind a patch, executed on the registers of the vCPU. */
#include <string.h>

#include "guest/page_walk.h"
#include "kvm/host/memory.h"
#include "kvm/vcpu/patch.h"
#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vcpu/x86/patch_execute.h"
#include "kvm/vcpu/x86/vcpu_x86.h"
#include "lib/code/x86/instruction.h"

#define PAGE_BYTES 4096u

static bool read_kernel(void *data, uint64_t from, void *to, size_t bytes)
{
	return page_walk_read_kernel(data, (gva_t){from}, to, bytes);
}

/* Where 8 bytes of the kernel's stack are; NULL: not there, or a processor might fault. */
static void *writable(struct vcpu *vcpu, const struct page_walk *walk, uint64_t address)
{
	struct page_leaf leaf;

	if (!(address >> 63) || address % sizeof(uint64_t) != 0 || !page_walk_leaf(walk, (gva_t){address}, &leaf) ||
	    !leaf.writable)
		return NULL;
	return memory_at(vcpu->machine->memory, page_leaf_gpa(&leaf, address), sizeof(uint64_t));
}

/*
 * The INT3 stays, and so no other vCPU has to wait. False: nothing has happened, and it needs a step: another
 * instruction than those of patch_execute.h, one that a page's end divides, or the guest has written to its place.
 */
bool vcpu_arch_execute(struct vcpu *vcpu, const uint8_t *place)
{
	struct kvm_run *run = vcpu->run;
	const struct kvm_sregs *sregs = &run->s.regs.sregs;
	const uint64_t rip = run->s.regs.regs.rip;
	const size_t n = MIN((size_t)INSTRUCTION_LENGTH_MAX, PAGE_BYTES - rip % PAGE_BYTES);
	uint8_t code[INSTRUCTION_LENGTH_MAX];
	struct page_walk walk;
	struct patch_execution execution = {
		.regs = run->s.regs.regs, .user = false, .gs_base = sregs->gs.base, .read = read_kernel, .data = &walk};
	void *stack = NULL;

	if (vcpu->regs.cpl != 0 || !sregs->cs.l || vcpu->arch->step.stepper || vcpu->debug.stepping)
		return false;
	memcpy(code, place, n);
	if (code[0] != vcpu_arch_trap.code)
		return false;
	patches_put_back(&vcpu->machine->patches, (gva_t){rip}, code, n);
	page_walk_init_regs(&walk, vcpu->machine->guest, &vcpu->regs);
	if (!patch_execute(&execution, code, n))
		return false;
	if (execution.write.bytes != 0 && !(stack = writable(vcpu, &walk, execution.write.address)))
		return false;
	vcpu_debug_hit(vcpu, rip);
	if (stack)
		memcpy(stack, &execution.write.value, sizeof(execution.write.value));
	run->s.regs.regs = execution.regs;
	run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
	return true;
}
