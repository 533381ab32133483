// SPDX-License-Identifier: BSD-2-Clause
/* Entries of the kernel, and what its tasks leave on their stacks when they switch away. */
#include "linux/x86/entry_regs.h"

#include <stddef.h>

#include "lib/symbol/x86/cfi_x86.h"
#include "linux/x86/linux_x86.h"

bool frame_from_entry_regs(struct page_walk *memory, uint64_t at, struct frame *frame)
{
	struct entry_regs regs;

	if (!page_walk_read(memory, (gva_t){at}, &regs, sizeof(regs)))
		return false;
	frame_from_pushed(&regs.pushed, at + offsetof(struct entry_regs, pushed), frame);
	frame->bp = regs.bp;
	frame->scratch = true;
	frame->registers[CFI_RAX] = regs.ax;
	frame->registers[CFI_RDX] = regs.dx;
	frame->registers[CFI_RCX] = regs.cx;
	frame->registers[CFI_RBX] = regs.bx;
	frame->registers[CFI_RSI] = regs.si;
	frame->registers[CFI_RDI] = regs.di;
	frame->registers[CFI_RBP] = regs.bp;
	frame->registers[CFI_R8] = regs.r8;
	frame->registers[CFI_R9] = regs.r9;
	frame->registers[CFI_R10] = regs.r10;
	frame->registers[CFI_R11] = regs.r11;
	frame->registers[CFI_R12] = regs.r12;
	frame->registers[CFI_R13] = regs.r13;
	frame->registers[CFI_R14] = regs.r14;
	frame->registers[CFI_R15] = regs.r15;
	frame->known = FRAME_ALL_KNOWN;
	return true;
}

/* A frame pointer of 1 above a multiple of 8 leads to a struct pt_regs (ENCODE_FRAME_POINTER, asm/frame.h). */
#define ENCODED_PT_REGS 1u

bool linux_x86_entered(const struct unwind_config *config G_GNUC_UNUSED, struct page_walk *memory, struct frame *frame,
                       enum step *step, enum unwind_end *end)
{
	if (frame->bp % sizeof(uint64_t) != ENCODED_PT_REGS)
		return false;
	if (!frame_from_entry_regs(memory, frame->bp - ENCODED_PT_REGS, frame))
		*step = step_done(end, UNWIND_UNREADABLE);
	else /* A kernel thread's first frame has an empty pt_regs under it (copy_thread in arch/x86/kernel/process.c).
	      */
		*step = frame->ip == 0 ? step_done(end, UNWIND_END_OF_STACK) : STEP_MORE;
	return true;
}

/* struct inactive_task_frame of x86-64 (arch/x86/include/asm/switch_to.h). */
struct switch_frame {
	uint64_t r15, r14, r13, r12, bx, bp, ip;
};

/* What __switch_to_asm has left at the saved stack pointer. `fork_return`: ret_from_fork_asm. */
bool linux_x86_from_switch(struct page_walk *memory, const struct listed_task *task, uint64_t fork_return,
                           struct frame *frame)
{
	struct switch_frame saved;

	if (!page_walk_read_kernel(memory, (gva_t){task->stack_pointer}, &saved, sizeof(saved)) || saved.ip >> 63 == 0)
		return false;
	*frame = (struct frame){
		.ip = saved.ip,
		.sp = task->stack_pointer + sizeof(saved),
		.bp = saved.bp,
		.exact = saved.ip == fork_return,
	};
	return true;
}

/* From r10 to ss: a task that is in a system call has saved the others, or not. */
#define FROM_R10 offsetof(struct entry_regs, r10)
#define USER_CS 0x33u /* of 64 bits; behind these 16, FRED has flags */
#define CALL_FUTEX 202u

static bool user_read(struct page_walk *walk, uint64_t at, size_t bytes, struct entry_regs *user, struct os_call *call)
{
	if (!page_walk_read(walk, (gva_t){at + FROM_R10}, &user->r10, bytes - FROM_R10))
		return false;
	*call = (struct os_call){
		user->orig_ax, user->ax, {user->di, user->si, user->dx, user->r10, user->r8, user->r9}};
	return true;
}

bool linux_x86_call_read(struct page_walk *walk, uint64_t at, struct os_call *call)
{
	struct entry_regs user;

	return user_read(walk, at, offsetof(struct entry_regs, pushed), &user, call);
}

bool linux_x86_futex_read(struct page_walk *walk, uint64_t regs_end, struct os_call *call)
{
	const uint64_t at = regs_end - sizeof(struct entry_regs);
	struct entry_regs user;

	return at >> 63 && user_read(walk, at, sizeof(user), &user, call) && (uint16_t)user.pushed.cs == USER_CS &&
	       call->number == CALL_FUTEX;
}
