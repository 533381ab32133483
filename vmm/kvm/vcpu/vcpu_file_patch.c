// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_file_patch.h"

#include "kvm/vcpu/vcpu.h"
#include "kvm/vcpu/vcpu_machine.h"

#define AGAIN_US 100u /* another vCPU is alone */

/* The trap is not wanted there: in a page that was not in memory, or in a process's own copy of one. */
static void lift(struct vcpu *vcpu)
{
	struct file_patches *patches = &vcpu->machine->file_patches;
	struct file_patch *patch;
	uint8_t *place;

	if (!vcpu_alone_begin(vcpu))
		return; /* and the guest comes here again */
	if (file_patches_hit(patches, vcpu->index, &vcpu->regs, &patch, &place) == FILE_TRAP_OURS)
		file_patch_lift(patches, patch, place);
	vcpu_alone_end(vcpu);
}

bool vcpu_file_patch_exit(struct vcpu *vcpu)
{
	struct file_patches *patches = &vcpu->machine->file_patches;
	struct file_patch *patch;
	uint8_t *place;

	if (atomic_load_explicit(&patches->n, memory_order_acquire) == 0 || !guest_regs_user(&vcpu->regs))
		return false;
	switch (file_patches_hit(patches, vcpu->index, &vcpu->regs, &patch, &place)) {
	case FILE_TRAP_NONE:
		return false;
	case FILE_TRAP_GONE:
		return true;
	case FILE_TRAP_OURS:
		break;
	}
	const bool is_wanted = atomic_load(&patch->is_wanted);
	if (is_wanted && vcpu_arch_execute_in_program(vcpu, &patch->code))
		return true;
	if (is_wanted)
		file_patch_lose(patch);
	lift(vcpu);
	return true;
}

struct settling {
	struct vcpu *vcpu;
	struct file_patch *only;
	bool change, is_needed, done;
};

static void settle(struct settling *settling)
{
	struct vcpu *vcpu = settling->vcpu;
	struct file_patches *patches = &vcpu->machine->file_patches;
	const size_t n = atomic_load(&patches->n);
	struct page_walk walk;

	if (!vcpu->regs.valid)
		return;
	file_code_walk(patches->guest, &vcpu->regs, &walk);
	for (size_t i = 0; i < n; i++)
		if (!settling->only || settling->only == patches->all[i])
			settling->is_needed |= file_patch_settle(patches, patches->all[i], &walk, settling->change);
}

/* On the vCPU's thread. */
static void settle_on_vcpu(void *data)
{
	struct settling *settling = data;

	settling->done = !settling->change || vcpu_alone_begin(settling->vcpu);
	if (!settling->done)
		return;
	settle(settling);
	if (settling->change)
		vcpu_alone_end(settling->vcpu);
}

void vcpu_file_patches_settle(struct vcpu_machine *machine, struct file_patch *only)
{
	struct settling settling = {.vcpu = &machine->vcpus[0], .only = only};

	if (!vcpu_run_on(settling.vcpu, settle_on_vcpu, &settling) || !settling.is_needed)
		return;
	settling.change = true;
	while (vcpu_run_on(settling.vcpu, settle_on_vcpu, &settling) && !settling.done)
		g_usleep(AGAIN_US);
}
