// SPDX-License-Identifier: BSD-2-Clause
/*
 * The frame-pointer chain of the System V ABI (x86-64 psABI, 3.2.2): rbp points at the caller's rbp, the return address
 * above it. Linux marks a saved struct pt_regs by an odd value (ENCODE_FRAME_POINTER in arch/x86/include/asm/frame.h).
 */
#include "guest/unwind_priv.h"

#define ENCODED_PT_REGS 1u

/* Through an interrupt or system call entry, out of what the kernel saved there. */
static enum step step_pt_regs(struct page_walk *memory, struct frame *frame, enum unwind_end *end)
{
	if (!frame_from_pt_regs(memory, frame->bp - ENCODED_PT_REGS, frame))
		return step_done(end, UNWIND_UNREADABLE);
	/* A kernel thread's first frame has an empty pt_regs under it (copy_thread in arch/x86/kernel/process.c). */
	return frame->ip == 0 ? step_done(end, UNWIND_END_OF_STACK) : STEP_MORE;
}

enum step unwind_frame_pointer_step(struct page_walk *memory, struct frame *frame, enum unwind_end *end)
{
	struct {
		uint64_t bp, ip;
	} saved;

	if (frame->bp == 0)
		return step_done(end, UNWIND_END_OF_STACK);
	if (!frame->user && frame->bp % sizeof(uint64_t) == ENCODED_PT_REGS)
		return step_pt_regs(memory, frame, end);
	if (frame->bp % sizeof(uint64_t) != 0)
		return step_done(end, UNWIND_BAD_FRAME);
	if (!page_walk_read(memory, (gva_t){frame->bp}, &saved, sizeof(saved)))
		return step_done(end, UNWIND_UNREADABLE);
	if (saved.ip == 0)
		return step_done(end, UNWIND_END_OF_STACK);
	/* A caller's frame is further up, except where the kernel changes stacks; user space has no business to. */
	if (saved.bp == frame->bp || (frame->user && saved.bp != 0 && saved.bp < frame->bp))
		return step_done(end, UNWIND_BAD_FRAME);
	frame->sp = frame->bp + sizeof(saved);
	frame->bp = saved.bp;
	frame->ip = saved.ip;
	frame->scratch = false;
	frame->exact = false;
	return STEP_MORE;
}
