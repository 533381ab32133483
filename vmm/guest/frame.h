// SPDX-License-Identifier: BSD-2-Clause
/* A frame of a call chain, and one step from it to its caller. */
#ifndef VPROF_GUEST_FRAME_H
#define VPROF_GUEST_FRAME_H

#include "guest/module.h"
#include "guest/page_walk.h"

/* Registers of a frame that unwind rules can name. Not all are known in every frame. */
struct frame {
	uint64_t ip, sp, bp;
	uint64_t ax, dx, di, r10, r13;
	bool scratch; /* ax .. r13 are known: the frame was interrupted, it did not make a call */
	bool exact;   /* ip is the instruction itself, not a return address */
	bool user;    /* stepped out of the kernel: ip, sp and bp are user space's */
};

/* Why a chain is no longer. */
enum unwind_end {
	UNWIND_END_OF_STACK,
	UNWIND_BAD_FRAME,  /* an impossible frame: no progress, or not a code address */
	UNWIND_NO_ENTRY,   /* code that the unwind table does not cover */
	UNWIND_DEPTH,      /* the depth limit */
	UNWIND_UNREADABLE, /* guest memory that is not mapped or not RAM */
	UNWIND_ENDS,
};

enum step { STEP_DONE, STEP_MORE };

static inline enum step step_done(enum unwind_end *end, enum unwind_end why)
{
	*end = why;
	return STEP_DONE;
}

/*
 * The frame becomes its caller (STEP_MORE), or *end says why there is none (STEP_DONE). `modules`: tables for code that
 * the kernel's own does not cover; NULL: none.
 */
enum step unwind_orc_step(const struct orc *orc, const struct module_table *modules, struct page_walk *memory,
                          struct frame *frame, enum unwind_end *end);
enum step unwind_frame_pointer_step(struct page_walk *memory, struct frame *frame, enum unwind_end *end);

/*
 * The frame becomes the interrupted one, from a whole struct pt_regs at `at`, or from the part that the processor
 * pushes.
 */
bool frame_from_pt_regs(struct page_walk *memory, uint64_t at, struct frame *frame);
bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame);

#endif
