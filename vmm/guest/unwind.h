// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call chains of a guest, walked in its memory from outside.
 *
 * Whatever guest memory contains, a walk makes at most `depth` steps and reads less than 2 KiB in each. No lock and no
 * allocation: it runs on the vCPU's thread between an overflow and the ring.
 */
#ifndef VPROF_GUEST_UNWIND_H
#define VPROF_GUEST_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/frame.h"
#include "guest/guest.h"
#include "guest/python.h"
#include "guest/snapshot.h"
#include "guest/user_code.h"
#include "guest/user_text.h"
#include "linux/module.h"

#define UNWIND_DEPTH_MAX VPROF_CALL_DEPTH_MAX
#define UNWIND_DEPTH_DEFAULT 64u

struct call_sites;

struct unwind_config {
	const struct orc *orc; /* kernel frames by ORC; NULL: by frame pointers */
	/* With ORC: tables for code that the kernel's table does not cover, of the thread that unwinds; NULL */
	const struct module_table *modules;
	const struct call_sites *sites; /* with ORC: to find stack pointers (unwind_search.h); NULL */
	bool user;                      /* go on into user space */
	const struct user_code *code;   /* of the process that runs; NULL: user space by frame pointers only */
	struct user_text *text;         /* to find its stack pointer (unwind_search.h); NULL: its code is read anew */
	unsigned depth;                 /* 1..UNWIND_DEPTH_MAX */
	uint32_t entry_record;          /* arm64: of struct kernel_layout */
	/* Takes each Python frame that goes into a chain, between the native ones; NULL: none does */
	void (*python_found)(const struct python_frame *frame, struct page_walk *memory, void *data);
	void *python_data;
};

#define UNWIND_CHAIN_MAX (2u * UNWIND_DEPTH_MAX) /* with a context word before each frame, at worst */

/*
 * Fills `chain` in perf's form, innermost first: PERF_CONTEXT_KERNEL and the kernel's frames, PERF_CONTEXT_USER and
 * user space's. A caller is given by its return address; an interrupted frame by its instruction, after a context word
 * of its own. Where `code` has no range for what called the kernel and nothing is mapped there, the program is gone and
 * the chain ends in the kernel. Returns the number of words; *end says why there are no more. `snapshot`: memory that
 * goes with `regs`, or NULL while the vCPU is still there.
 */
unsigned unwind(const struct unwind_config *config, struct guest *guest, const struct guest_regs *regs,
                const struct snapshot *snapshot, uint64_t chain[UNWIND_CHAIN_MAX], enum unwind_end *end);

/*
 * The same from a frame on, as listed_task_frame makes it, by the page tables of `memory`. The frame becomes the last
 * one.
 */
unsigned unwind_from(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                     uint64_t chain[UNWIND_CHAIN_MAX], enum unwind_end *end);

/* One step of that: the frame becomes its caller, or *end says why there is none. */
enum step unwind_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                      enum unwind_end *end);

#endif
