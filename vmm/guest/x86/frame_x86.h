// SPDX-License-Identifier: BSD-2-Clause
/* Frames of x86-64, and how the kernel's lead to their callers. */
#ifndef VPROF_GUEST_X86_FRAME_X86_H
#define VPROF_GUEST_X86_FRAME_X86_H

#include "guest/unwind.h"

void frame_from_registers(const struct guest_regs *regs, struct frame *frame);

#define FRAME_ALL_KNOWN ((1u << CFI_REGISTERS) - 1)

/*
 * The frame becomes its caller (STEP_MORE), or *end says why there is none (STEP_DONE). `config` NULL: no system's
 * entries are known.
 */
enum step unwind_frame_pointer_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                                    enum unwind_end *end);

/* The same in user space, in code without call frame information. `code`: of the process; NULL: not known. */
enum step unwind_start_step(const struct user_code *code, struct page_walk *memory, struct frame *frame,
                            enum unwind_end *end);

/* The frame becomes its caller, to which it returns. */
void frame_return(struct frame *frame, uint64_t ip, uint64_t sp, uint64_t bp);

/* What the processor pushes at an interrupt or exception (SDM vol. 3A, 6.14). */
struct frame_pushed {
	uint64_t ip, cs, flags, sp, ss;
};
/* The frame becomes the interrupted one, by what is pushed at `at`: what is known of its other registers stays. */
void frame_from_pushed(const struct frame_pushed *pushed, uint64_t at, struct frame *frame);
bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame);

#endif
