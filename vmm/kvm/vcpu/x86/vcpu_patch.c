// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/vcpu_patch.h"

#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#include "guest/instruction.h"
#include "guest/page_walk.h"
#include "kvm/host/memory.h"
#include "kvm/host/x86/kvm_vcpu.h"
#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vcpu/x86/patch_execute.h"
#include "kvm/vcpu/x86/vcpu_debug.h"

#define PAGE_BYTES 4096u
#define VECTOR_BP 3u
#define CR0_PG (UINT64_C(1) << 31)
#define CR4_LA57 (UINT64_C(1) << 12)
/* PTI_USER_PGTABLE_BIT of Linux: with page table isolation, the user's half, which lacks most of the kernel. */
#define CR3_USER_HALF UINT64_C(0x1000)

/* ---- where an instruction is ---- */

struct lookup {
	struct vcpu *vcpu;
	gva_t at;
	gpa_t gpa;
	bool found;
};

static bool translate(struct vcpu_machine *machine, const struct kvm_sregs *sregs, uint64_t cr3, struct lookup *lookup)
{
	struct page_walk walk;

	page_walk_init(&walk, machine->guest, cr3, (sregs->cr4 & CR4_LA57) != 0);
	return page_walk_translate(&walk, lookup->at, &lookup->gpa);
}

/* Before its first instruction, a guest that begins without paging has no other addresses than physical ones. */
static void look_up(void *data)
{
	struct lookup *lookup = data;
	struct vcpu_machine *machine = lookup->vcpu->machine;
	struct kvm_sregs sregs;

	if (ioctl(lookup->vcpu->fd, KVM_GET_SREGS, &sregs) < 0)
		return;
	lookup->gpa = (gpa_t){lookup->at.value};
	if (sregs.cr0 & CR0_PG)
		lookup->found = translate(machine, &sregs, sregs.cr3, lookup) ||
		                translate(machine, &sregs, sregs.cr3 & ~CR3_USER_HALF, lookup);
	else
		lookup->found = machine->guest->state == GUEST_CREATED;
}

uint8_t *vcpu_patch_find(struct vcpu_machine *machine, gva_t at)
{
	struct lookup lookup = {.at = at};

	for (unsigned i = 0; i < machine->n_vcpus && !lookup.found; i++) {
		lookup.vcpu = &machine->vcpus[i];
		vcpu_run_on(lookup.vcpu, look_up, &lookup);
	}
	return lookup.found ? memory_at(machine->memory, lookup.gpa, 1) : NULL;
}

/* On the vCPU's thread, by the registers of its exit. */
static const uint8_t *code_at(struct vcpu *vcpu, uint64_t rip)
{
	const struct kvm_sregs *sregs = &vcpu->run->s.regs.sregs;
	struct lookup lookup = {.vcpu = vcpu, .at = {rip}};

	if ((sregs->cr0 & CR0_PG) == 0 || !translate(vcpu->machine, sregs, sregs->cr3, &lookup))
		return NULL;
	return memory_at(vcpu->machine->memory, lookup.gpa, 1);
}

/* ---- alone ---- */

/*
 * machine->alone is the vCPU that has the turn: no other vCPU enters the guest (is_held of vcpu.c), and here we wait
 * until each has left it. False: it is another's turn, for which this one has to wait outside.
 */
static bool alone_begin(struct vcpu *vcpu)
{
	struct vcpu_machine *machine = vcpu->machine;
	struct vcpu *none = NULL;

	if (!atomic_compare_exchange_strong(&machine->alone, &none, vcpu))
		return false;
	for (unsigned i = 0; i < machine->n_vcpus; i++)
		if (i != vcpu->index)
			vcpu_hold(&machine->vcpus[i]);
	return true;
}

static void alone_end(struct vcpu *vcpu)
{
	struct vcpu_machine *machine = vcpu->machine;

	atomic_store(&machine->alone, NULL);
	for (unsigned i = 0; i < machine->n_vcpus; i++)
		if (i != vcpu->index)
			vcpu_unhold(&machine->vcpus[i]);
}

/* ---- a step over the instruction ---- */

static void set_stepping(struct vcpu *vcpu, bool stepping)
{
	vcpu->arch->debug.stepping = stepping;
	vcpu->arch->debug.over = vcpu->arch->patch.over;
	if (!vcpu_debug_apply(vcpu))
		vcpu_crash(
			vcpu, GUEST_END_VMM_ERROR,
			g_strdup_printf("cannot step vCPU %u over a breakpoint: %s", vcpu->index, g_strerror(errno)));
}

/*
 * The last thing that an instruction does may be to leave the guest (OUT, a write to a device), and a fault leads away
 * from it: KVM calls neither a step.
 */
void vcpu_patch_returned(struct vcpu *vcpu, int failed)
{
	struct vcpu_patch *patch = &vcpu->arch->patch;
	struct kvm_run *run = vcpu->run;
	bool debug = failed == 0 && run->exit_reason == KVM_EXIT_DEBUG;

	/* KVM leaves there what the exit before had (its handle_exception_nmi and bp_interception). */
	if (debug && run->debug.arch.exception == VECTOR_BP)
		run->debug.arch.dr6 = 0;
	bool stepped = debug && (run->debug.arch.dr6 & DR6_BS) != 0;
	if (!patch->stepping || !(stepped || vcpu->regs.rip != patch->over))
		return;
	patches_lay(&vcpu->machine->arch->patches, (gva_t){patch->over}, patch->byte);
	patch->stepping = false;
	alone_end(vcpu);
	if (!stepped)
		set_stepping(vcpu, false);
}

/* VMX and SVM intercept it; where CPL 0 is emulated (host_pvm.c), it is what KVM cannot emulate. */
static bool is_int3(const struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	uint8_t bytes[INSTRUCTION_BYTES_MAX];

	switch (run->exit_reason) {
	case KVM_EXIT_DEBUG:
		return run->debug.arch.exception == VECTOR_BP;
	case KVM_EXIT_INTERNAL_ERROR:
		return kvm_failed_instruction(run, bytes) > 0 && bytes[0] == PATCH_INT3;
	default:
		return false;
	}
}

/* The guest goes on with the same instruction; if it is an INT3 still, it comes here again. */
static void step_over(struct vcpu *vcpu, const uint8_t *byte)
{
	struct vcpu_patch *patch = &vcpu->arch->patch;
	gva_t at = {vcpu->regs.rip};

	if (!alone_begin(vcpu))
		return;
	if (!patches_lift(&vcpu->machine->arch->patches, at, byte)) {
		alone_end(vcpu);
		return;
	}
	vcpu_debug_hit(vcpu, at.value);
	*patch = (struct vcpu_patch){.stepping = true, .over = at.value, .byte = byte};
	set_stepping(vcpu, true);
}

/* ---- the instruction executed here ---- */

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
	return memory_at(vcpu->machine->memory, (gpa_t){leaf.gpa + (address - leaf.gva)}, sizeof(uint64_t));
}

/*
 * The INT3 stays, and so no other vCPU has to wait. False: nothing has happened, and it needs a step: another
 * instruction than those of patch_execute.h, one that a page's end divides, or the guest has written to its place.
 */
static bool execute(struct vcpu *vcpu, const uint8_t *byte)
{
	struct kvm_run *run = vcpu->run;
	const struct kvm_sregs *sregs = &run->s.regs.sregs;
	const uint64_t rip = run->s.regs.regs.rip;
	const size_t n = MIN((size_t)INSTRUCTION_LENGTH_MAX, PAGE_BYTES - rip % PAGE_BYTES);
	uint8_t code[INSTRUCTION_LENGTH_MAX];
	struct page_walk walk;
	struct patch_execution execution = {
		.regs = run->s.regs.regs, .gs_base = sregs->gs.base, .read = read_kernel, .data = &walk};
	void *stack = NULL;

	if (vcpu->regs.cpl != 0 || !sregs->cs.l || vcpu->arch->debug.step.stepper || vcpu->arch->debug.stepping)
		return false;
	memcpy(code, byte, n);
	if (code[0] != PATCH_INT3)
		return false;
	patches_put_back(&vcpu->machine->arch->patches, (gva_t){rip}, code, n);
	page_walk_init(&walk, vcpu->machine->guest, sregs->cr3, (sregs->cr4 & CR4_LA57) != 0);
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

/* A byte that is no INT3 any more was one of ours when it was executed. */
bool vcpu_patch_exit(struct vcpu *vcpu)
{
	if (!is_int3(vcpu))
		return false;
	const uint8_t *byte = code_at(vcpu, vcpu->regs.rip);
	if (!byte)
		return false;
	if (patches_cover(&vcpu->machine->arch->patches, (gva_t){vcpu->regs.rip}, byte)) {
		if (!execute(vcpu, byte))
			step_over(vcpu, byte);
		return true;
	}
	return __atomic_load_n(byte, __ATOMIC_RELAXED) != PATCH_INT3;
}
