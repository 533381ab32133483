// SPDX-License-Identifier: BSD-2-Clause
/* A frame of a call chain, and one step from it to its caller. */
#ifndef VPROF_GUEST_FRAME_H
#define VPROF_GUEST_FRAME_H

#include "guest/page_walk.h"
#include "guest/user_code.h"

/* Registers of a frame that unwind rules can name. Not all are known in every frame. */
struct frame {
	uint64_t ip, sp, bp;
	uint64_t callee; /* an instruction of the function that it has called; 0: it was interrupted */
	bool scratch;    /* all registers are known: the frame was interrupted, it did not make a call */
	bool exact;      /* ip is the instruction itself, not a return address */
	bool user;       /* stepped out of the kernel: ip, sp and bp are user space's */
	uint64_t registers[CFI_REGISTERS]; /* in user space, and with `scratch`: all of them (enum cfi_register) */
	uint32_t known;                    /* in user space: a bit for each that is */
	uint64_t pushed; /* where the processor has saved ip, cs, flags, sp and ss; 0: the frame made a call */
	enum guest_processor processor;
	/* Where a link register has the return address (struct cfi_arch): */
	uint64_t lr;          /* that register, if the frame was interrupted */
	uint64_t return_mask; /* the bits of a return address that may be its signature */
};

/* A return address without its signature (FEAT_PAuth of arm64), which is in the bits that address nothing. */
static inline uint64_t frame_unsigned(const struct frame *frame, uint64_t address)
{
	return address >> 55 & 1 ? address | frame->return_mask : address & ~frame->return_mask;
}

/* Why a chain is no longer. */
enum unwind_end {
	UNWIND_END_OF_STACK,
	UNWIND_BAD_FRAME,  /* an impossible frame: no progress, or not a code address */
	UNWIND_NO_ENTRY,   /* code that the unwind table does not cover */
	UNWIND_DEPTH,      /* the depth limit */
	UNWIND_UNREADABLE, /* guest memory that is not mapped or not RAM */
	UNWIND_NO_STACK,   /* the stack pointer is not known (unwind_search.h) */
	UNWIND_NO_FORM,    /* user code with call frame information that is not walked (cfi.h) */
	UNWIND_ENDS,
};

enum step { STEP_DONE, STEP_MORE };

static inline enum step step_done(enum unwind_end *end, enum unwind_end why)
{
	*end = why;
	return STEP_DONE;
}

/*
 * True when a process can have called from there. Most user code has no frame pointers, and the register for it leads
 * to words that are not addresses. A snapshot does not say what else was mapped.
 */
bool frame_is_mapped(struct page_walk *memory, uint64_t ip);

/*
 * The cells for the instruction at `address`; NULL: there are none, and *end becomes the cause of a chain that ends
 * here. `code` NULL: not known.
 */
const struct cfi_cell *unwind_cells_find(const struct user_code *code, uint64_t address, enum unwind_end *end);

/* One step of a frame in user space (unwind.h). `code`: of the process; NULL: not known. */
enum step unwind_user_step(const struct user_code *code, struct page_walk *memory, struct frame *frame,
                           enum unwind_end *end);

#endif
