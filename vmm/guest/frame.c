// SPDX-License-Identifier: BSD-2-Clause
#include "guest/frame.h"

#include <stddef.h>

/* struct pt_regs of x86-64 (arch/x86/include/asm/ptrace.h), as the kernel saves it on its stacks. */
struct kernel_pt_regs {
	uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	uint64_t ip, cs, flags, sp, ss; /* pushed by the processor */
};

#define PT_REGS_HARDWARE_OFFSET offsetof(struct kernel_pt_regs, ip)
#define CS_RPL_MASK 3u

static void frame_from_hardware(const struct kernel_pt_regs *regs, struct frame *frame)
{
	frame->ip = regs->ip;
	frame->sp = regs->sp;
	frame->exact = true;
	frame->user = (regs->cs & CS_RPL_MASK) == 3;
}

bool frame_from_pt_regs(struct page_walk *memory, uint64_t at, struct frame *frame)
{
	struct kernel_pt_regs regs;

	if (!page_walk_read(memory, (gva_t){at}, &regs, sizeof(regs)))
		return false;
	frame_from_hardware(&regs, frame);
	frame->bp = regs.bp;
	frame->ax = regs.ax;
	frame->dx = regs.dx;
	frame->di = regs.di;
	frame->r10 = regs.r10;
	frame->r13 = regs.r13;
	frame->scratch = true;
	return true;
}

bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame)
{
	struct kernel_pt_regs regs;

	if (!page_walk_read(memory, (gva_t){at}, &regs.ip, sizeof(regs) - PT_REGS_HARDWARE_OFFSET))
		return false;
	frame_from_hardware(&regs, frame);
	frame->scratch = false;
	return true;
}
