// SPDX-License-Identifier: BSD-2-Clause
/* What Linux saves on its stacks when it is entered: struct pt_regs of x86-64 (arch/x86/include/asm/ptrace.h). */
#ifndef VPROF_LINUX_X86_ENTRY_REGS_H
#define VPROF_LINUX_X86_ENTRY_REGS_H

#include "guest/x86/frame_x86.h"

struct entry_regs {
	uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	struct frame_pushed pushed;
};

#define LINUX_X86_FRED_PADDING 16u /* behind a struct pt_regs of user space, in kernels that can use FRED */

/* The frame becomes the interrupted one, from a whole struct pt_regs at `at`. */
bool frame_from_entry_regs(struct page_walk *memory, uint64_t at, struct frame *frame);

#endif
