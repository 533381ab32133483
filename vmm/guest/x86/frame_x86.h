// SPDX-License-Identifier: BSD-2-Clause
/* Frames of x86-64, and how the kernel's lead to their callers. */
#ifndef VPROF_GUEST_X86_FRAME_X86_H
#define VPROF_GUEST_X86_FRAME_X86_H

#include "guest/frame.h"
#include "linux/x86/orc_entry.h"

void frame_from_registers(const struct guest_regs *regs, struct frame *frame);

/*
 * The frame becomes its caller (STEP_MORE), or *end says why there is none (STEP_DONE). `modules`: tables for code that
 * the kernel's own does not cover; NULL: none.
 */
enum step unwind_orc_step(const struct orc *orc, const struct module_table *modules, struct page_walk *memory,
                          struct frame *frame, enum unwind_end *end);
enum step unwind_frame_pointer_step(struct page_walk *memory, struct frame *frame, enum unwind_end *end);

/* The same in user space, in code without call frame information. `code`: of the process; NULL: not known. */
enum step unwind_start_step(const struct user_code *code, struct page_walk *memory, struct frame *frame,
                            enum unwind_end *end);

/* The rule of a retpoline's CALL, or of the MOV behind it, where one of the two is at ip; ORC has none for them. */
bool unwind_orc_retpoline(struct page_walk *memory, uint64_t ip, struct orc_entry *entry);

/* The frame becomes its caller, to which it returns. */
void frame_return(struct frame *frame, uint64_t ip, uint64_t sp, uint64_t bp);

/*
 * The frame becomes the interrupted one, from a whole struct pt_regs at `at`, or from the part that the processor
 * pushes.
 */
bool frame_from_pt_regs(struct page_walk *memory, uint64_t at, struct frame *frame);
bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame);

#endif
