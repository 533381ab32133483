// SPDX-License-Identifier: BSD-2-Clause
/* A frame of a call chain, and one step from it to its caller. */
#ifndef VPROF_GUEST_FRAME_H
#define VPROF_GUEST_FRAME_H

#include "guest/module.h"
#include "guest/page_walk.h"
#include "guest/user_code.h"

/* Registers of a frame that unwind rules can name. Not all are known in every frame. */
struct frame {
	uint64_t ip, sp, bp;
	uint64_t ax, dx, di, r10, r13;
	uint64_t callee; /* an instruction of the function that it has called; 0: it was interrupted */
	bool scratch;    /* ax .. r13 are known: the frame was interrupted, it did not make a call */
	bool exact;      /* ip is the instruction itself, not a return address */
	bool user;       /* stepped out of the kernel: ip, sp and bp are user space's */
	uint64_t registers[CFI_REGISTERS]; /* in user space: all of them, by DWARF numbers */
	uint32_t known;                    /* a bit for each that is */
	uint64_t pushed; /* where the processor has saved ip, cs, flags, sp and ss; 0: the frame made a call */
	enum guest_processor processor;
	/* arm64: bp is X29, and registers and known have it, SP and X30 (CFI_ARM64_*). */
	uint64_t lr;          /* X30, if the frame was interrupted */
	uint64_t return_mask; /* the bits of a return address that may be its signature */
};

/* The frame that the vCPU is in, of x86-64 and of arm64. */
struct frame frame_from_registers(const struct guest_regs *regs);
struct frame frame_from_registers_arm64(const struct guest_regs *regs);

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
 * The frame becomes its caller (STEP_MORE), or *end says why there is none (STEP_DONE). `modules`: tables for code that
 * the kernel's own does not cover; NULL: none.
 */
enum step unwind_orc_step(const struct orc *orc, const struct module_table *modules, struct page_walk *memory,
                          struct frame *frame, enum unwind_end *end);
enum step unwind_frame_pointer_step(struct page_walk *memory, struct frame *frame, enum unwind_end *end);

/*
 * The same for a frame of arm64, in kernel or user space: by frame records. `entry_record`: where the kernel's struct
 * pt_regs has one; 0: not known, and the chain ends in the kernel.
 */
enum step unwind_frame_record_step(struct page_walk *memory, struct frame *frame, uint32_t entry_record,
                                   enum unwind_end *end);

/*
 * True when a process can have called from there. Most user code has no frame pointers, and its rbp leads to words that
 * are not addresses. A snapshot does not say what else was mapped.
 */
bool frame_is_mapped(struct page_walk *memory, uint64_t ip);

/* The rule of a retpoline's CALL, or of the MOV behind it, where one of the two is at ip; ORC has none for them. */
bool unwind_orc_retpoline(struct page_walk *memory, uint64_t ip, struct orc_entry *entry);

/* The same for a frame in user space. `code`: of the process; NULL: not known. */
enum step unwind_user_step(const struct user_code *code, struct page_walk *memory, struct frame *frame,
                           enum unwind_end *end);

/* The frame becomes its caller, to which it returns. */
void frame_return(struct frame *frame, uint64_t ip, uint64_t sp, uint64_t bp);

/*
 * The frame becomes the interrupted one, from a whole struct pt_regs at `at`, or from the part that the processor
 * pushes.
 */
bool frame_from_pt_regs(struct page_walk *memory, uint64_t at, struct frame *frame);
bool frame_from_interrupt(struct page_walk *memory, uint64_t at, struct frame *frame);

/*
 * The frame in which a task that sleeps, or waits for a processor, will go on: from the struct inactive_task_frame that
 * __switch_to_asm left at its saved stack pointer. `fork_return`: ret_from_fork_asm, where a task begins that has never
 * run.
 */
bool frame_from_switch(struct page_walk *memory, uint64_t stack_pointer, uint64_t fork_return, struct frame *frame);

/* The same on arm64, where cpu_switch_to has saved these (struct cpu_context). `fork_return`: ret_from_fork. */
bool frame_from_switch_arm64(const struct page_walk *memory, uint64_t pc, uint64_t sp, uint64_t fp,
                             uint64_t fork_return, struct frame *frame);

/* The registers of a frame of the kernel, as far as they are known, with the page tables of `memory`. */
struct guest_regs frame_registers(const struct frame *frame, const struct page_walk *memory);

#endif
