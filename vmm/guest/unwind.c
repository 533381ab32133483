// SPDX-License-Identifier: BSD-2-Clause
#include "guest/unwind.h"

#include <linux/perf_event.h>

#include "guest/processor.h"

G_DEFINE_QUARK(vprof_unwind_error, unwind_error)

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

enum step unwind_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                      enum unwind_end *end)
{
	return frame->user ? unwind_user_step(config->code, memory, frame, end)
	                   : processor_of(frame->processor)->frames->kernel_step(config, memory, frame, end);
}

bool frame_is_mapped(struct page_walk *memory, uint64_t ip)
{
	gpa_t gpa;

	return memory->snapshot || page_walk_translate(memory, (gva_t){ip}, &gpa);
}

/*
 * While execve(2) or exit(2) runs and has taken the program's memory away, the kernel's stack still says where it was
 * called from: at an address where nothing is any more, or soon another program.
 */
static bool is_gone(const struct user_code *code, struct page_walk *memory, const struct frame *frame)
{
	return code && !user_code_find(code, frame->ip) && !frame_is_mapped(memory, frame->ip);
}

/* What the native frame executes, which was at `from` on the stack and has the next one as its caller. */
static void python_add(const struct unwind_config *config, struct page_walk *memory, struct python_walk *python,
                       uint64_t from, uint64_t to, struct chain *chain)
{
	struct python_frame frame;

	while (chain->frames + 1 < config->depth && python_walk_next(python, memory, from, to, &frame)) {
		config->python_found(&frame, memory, config->python_data);
		chain->words[chain->n++] = frame.ip;
		chain->frames++;
	}
}

unsigned unwind_from(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                     uint64_t words[UNWIND_CHAIN_MAX], enum unwind_end *end)
{
	struct chain chain = {.words = words};
	struct python_walk python = {NULL};
	bool python_begun = false;

	if (!frame->exact)
		chain.words[chain.n++] = (uint64_t)PERF_CONTEXT_KERNEL;
	chain_add(&chain, frame);
	*end = UNWIND_END_OF_STACK;
	while (!frame->user || config->user) {
		if (chain.frames >= config->depth) {
			*end = UNWIND_DEPTH;
			break;
		}
		const bool was_user = frame->user;
		const uint64_t sp = frame->sp;

		if (frame->user && !python_begun && config->code && config->python_found) {
			python_walk_init(&python, &config->code->python, memory, sp);
			python_begun = true;
		}

		if (unwind_step(config, memory, frame, end) == STEP_DONE)
			break;
		if (frame->user && !was_user && (!config->user || is_gone(config->code, memory, frame))) {
			*end = UNWIND_END_OF_STACK;
			break;
		}
		if (was_user && python.layout)
			python_add(config, memory, &python, sp, frame->sp, &chain);
		if (!frame->user)
			frame->ip = guest_linked_address(memory->guest, frame->ip);
		chain_add(&chain, frame);
	}
	return chain.n;
}

unsigned unwind(const struct unwind_config *config, struct guest *guest, const struct guest_regs *regs,
                const struct snapshot *snapshot, uint64_t words[UNWIND_CHAIN_MAX], enum unwind_end *end)
{
	struct page_walk memory;
	struct frame frame;

	page_walk_init_regs(&memory, guest, regs);
	memory.snapshot = snapshot;
	processor_of(regs->processor)->frames->from_registers(regs, &frame);
	return unwind_from(config, &memory, &frame, words, end);
}
