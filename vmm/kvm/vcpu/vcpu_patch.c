// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_patch.h"

#include <errno.h>

#include "guest/page_walk.h"
#include "kvm/host/memory.h"
#include "kvm/vcpu/patch.h"
#include "kvm/vcpu/vcpu.h"
#include "kvm/vcpu/vcpu_file_patch.h"
#include "kvm/vcpu/vcpu_machine.h"

/* ---- where an instruction is ---- */

struct lookup {
	struct vcpu *vcpu;
	gva_t at;
	gpa_t gpa;
	bool found;
};

static void look_up(void *data)
{
	struct lookup *lookup = data;

	lookup->found = vcpu_arch_translate(lookup->vcpu, lookup->at, &lookup->gpa);
}

static uint8_t *place_of(struct vcpu_machine *machine, const struct lookup *lookup)
{
	return lookup->found ? memory_at(machine->memory, lookup->gpa, vcpu_arch_trap.bytes) : NULL;
}

uint8_t *vcpu_patch_find(struct vcpu_machine *machine, gva_t at)
{
	struct lookup lookup = {.at = at};

	for (unsigned i = 0; i < machine->n_vcpus && !lookup.found; i++) {
		lookup.vcpu = &machine->vcpus[i];
		vcpu_run_on(lookup.vcpu, look_up, &lookup);
	}
	return place_of(machine, &lookup);
}

/* On the vCPU's thread, by the registers of its exit. */
static const uint8_t *code_at(struct vcpu *vcpu, uint64_t ip)
{
	struct lookup lookup = {.vcpu = vcpu, .at = {ip}};
	struct page_walk walk;

	page_walk_init_regs(&walk, vcpu->machine->guest, &vcpu->regs);
	lookup.found = page_walk_translate(&walk, lookup.at, &lookup.gpa);
	return place_of(vcpu->machine, &lookup);
}

/* ---- alone ---- */

/*
 * machine->alone is the vCPU that has the turn: no other vCPU enters the guest (is_held of vcpu.c), and here we wait
 * until each has left it. False: it is another's turn, for which this one has to wait outside.
 */
bool vcpu_alone_begin(struct vcpu *vcpu)
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

void vcpu_alone_end(struct vcpu *vcpu)
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
	vcpu->debug.stepping = stepping;
	vcpu->debug.over = vcpu->patch.over;
	if (!vcpu_arch_debug(vcpu))
		vcpu_crash(
			vcpu, GUEST_END_VMM_ERROR,
			g_strdup_printf("cannot step vCPU %u over a breakpoint: %s", vcpu->index, g_strerror(errno)));
}

/*
 * The last thing that an instruction does may be to leave the guest (an access to a device), and a fault leads away
 * from it: KVM calls neither a step.
 */
void vcpu_patch_returned(struct vcpu *vcpu, int failed)
{
	struct vcpu_patch *patch = &vcpu->patch;
	const bool stepped = vcpu_arch_stepped(vcpu, failed);

	if (!patch->stepping || !(stepped || guest_regs_ip(&vcpu->regs) != patch->over))
		return;
	patches_lay(&vcpu->machine->patches, (gva_t){patch->over}, patch->place);
	patch->stepping = false;
	vcpu_alone_end(vcpu);
	if (!stepped)
		set_stepping(vcpu, false);
}

/* The guest goes on with the same instruction; if it is a trap still, it comes here again. */
static void step_over(struct vcpu *vcpu, const uint8_t *place)
{
	struct vcpu_patch *patch = &vcpu->patch;
	gva_t at = {guest_regs_ip(&vcpu->regs)};

	if (!vcpu_alone_begin(vcpu))
		return;
	if (!patches_lift(&vcpu->machine->patches, at, place)) {
		vcpu_alone_end(vcpu);
		return;
	}
	vcpu_debug_hit(vcpu, at.value);
	*patch = (struct vcpu_patch){.stepping = true, .over = at.value, .place = place};
	set_stepping(vcpu, true);
}

/* What is no trap any more was one of ours when it was executed. */
bool vcpu_patch_exit(struct vcpu *vcpu)
{
	struct patches *patches = &vcpu->machine->patches;
	const gva_t at = {guest_regs_ip(&vcpu->regs)};

	if (!vcpu_arch_trapped(vcpu))
		return false;
	if (vcpu_file_patch_exit(vcpu))
		return true;
	const uint8_t *place = code_at(vcpu, at.value);
	if (!place)
		return false;
	if (patches_cover(patches, at, place)) {
		if (!vcpu_arch_execute(vcpu, place))
			step_over(vcpu, place);
		return true;
	}
	return !patches_trap(patches, place);
}
