// SPDX-License-Identifier: BSD-2-Clause
/* What the unwinders share: a frame, and one step from it to its caller. */
#ifndef VPROF_GUEST_UNWIND_PRIV_H
#define VPROF_GUEST_UNWIND_PRIV_H

#include <stddef.h>

#include "guest/page_walk.h"
#include "guest/unwind.h"

/* Registers of a frame that unwind rules may name; which of them are known varies by frame. */
struct frame {
	uint64_t ip, sp, bp;
	uint64_t ax, dx, di, r10, r13;
	bool scratch; /* ax .. r13 are known: the frame was interrupted, not called from */
	bool exact;   /* ip is the instruction itself, not a return address */
	bool user;    /* stepped out of the kernel: ip, sp and bp are user space's */
};

/* struct pt_regs of x86-64 (arch/x86/include/asm/ptrace.h), as the kernel saves it on its stacks. */
struct kernel_pt_regs {
	uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	uint64_t ip, cs, flags, sp, ss; /* pushed by the processor */
};

#define PT_REGS_HARDWARE_OFFSET offsetof(struct kernel_pt_regs, ip)

enum step { STEP_DONE, STEP_MORE };

static inline enum step step_done(enum unwind_end *end, enum unwind_end why)
{
	*end = why;
	return STEP_DONE;
}

/* frame becomes its caller's (STEP_MORE), or *end says why there is none (STEP_DONE). */
enum step unwind_orc_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                          enum unwind_end *end);
enum step unwind_frame_pointer_step(struct page_walk *memory, struct frame *frame, enum unwind_end *end);

/* frame := what was interrupted, from a whole struct pt_regs at `at`, or from its hardware part alone. */
bool frame_from_pt_regs(struct page_walk *memory, uint64_t at, struct frame *frame);
bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame);

#endif
