// SPDX-License-Identifier: BSD-2-Clause
#include "guest/unwind.h"

#include <linux/perf_event.h>

struct chain {
	uint64_t *words;
	unsigned n;
	unsigned frames;
};

/* An interrupted instruction is not a return address: a context word before it says so. */
static void chain_add(struct chain *chain, const struct frame *frame)
{
	if (frame->exact)
		chain->words[chain->n++] = (uint64_t)(frame->user ? PERF_CONTEXT_USER : PERF_CONTEXT_KERNEL);
	chain->words[chain->n++] = frame->ip;
	chain->frames++;
}

static enum step step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                      enum unwind_end *end)
{
	if (!frame->user && config->orc)
		return unwind_orc_step(config->orc, config->modules, memory, frame, end);
	return unwind_frame_pointer_step(memory, frame, end);
}

unsigned unwind(const struct unwind_config *config, struct guest *guest, const struct guest_regs *regs,
                const struct snapshot *snapshot, uint64_t words[UNWIND_CHAIN_MAX], enum unwind_end *end)
{
	struct chain chain = {.words = words};
	struct page_walk memory;
	struct frame frame = {
		.ip = regs->rip,
		.sp = regs->rsp,
		.bp = regs->rbp,
		.ax = regs->rax,
		.dx = regs->rdx,
		.di = regs->rdi,
		.r10 = regs->r10,
		.r13 = regs->r13,
		.scratch = true,
		.exact = true,
		.user = regs->cpl == 3,
	};

	page_walk_init(&memory, guest, regs->cr3, regs->la57);
	memory.snapshot = snapshot;
	chain_add(&chain, &frame);
	*end = UNWIND_END_OF_STACK;
	while (!frame.user || config->user) {
		if (chain.frames >= config->depth) {
			*end = UNWIND_DEPTH;
			break;
		}
		if (step(config, &memory, &frame, end) == STEP_DONE)
			break;
		if (frame.user && !config->user) {
			*end = UNWIND_END_OF_STACK;
			break;
		}
		chain_add(&chain, &frame);
	}
	return chain.n;
}
