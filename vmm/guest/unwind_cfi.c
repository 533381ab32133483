// SPDX-License-Identifier: BSD-2-Clause
/*
 * One step in user space: by the call frame information of the file that the code is from (lib/symbol/cfi.h), and by
 * frame pointers, or the frame records of arm64, where there is none. The tables come from other processes; what they
 * say is only used as an address to read at.
 */
#include <string.h>

#include "guest/processor.h"

#define BIT(name) (1u << (name))

/* Below the CFA are the return address and the six registers that a function saves: they are read at once. */
#define WINDOW_BYTES (8 * sizeof(uint64_t))

/* What is read for the step from a frame. */
struct cfi_step {
	struct page_walk *memory;
	const struct frame *frame;
	uint64_t cfa;
	uint64_t window; /* the address of `data` */
	bool has_window;
	uint8_t data[WINDOW_BYTES];
};

static inline bool word_read(struct cfi_step *step, uint64_t at, uint64_t *word)
{
	uint64_t offset = at - step->window;

	if (!step->has_window || offset > WINDOW_BYTES - sizeof(*word))
		return page_walk_read(step->memory, (gva_t){at}, word, sizeof(*word));
	memcpy(word, step->data + offset, sizeof(*word));
	return true;
}

/* What a cell says. `end` is set on failure. */
static inline bool cell_value(struct cfi_step *step, const struct cfi_cell *cell, uint64_t *value, enum unwind_end *end)
{
	uint64_t at = (cell->base == CFI_CFA ? step->cfa : step->frame->registers[cell->base]) +
	              (uint64_t)(int64_t)cell->offset;

	if (cell->base != CFI_CFA && !(step->frame->known & BIT(cell->base))) {
		*end = UNWIND_BAD_FRAME;
		return false;
	}
	if (cell->how == CFI_MEMORY && !word_read(step, at, &at)) {
		*end = UNWIND_UNREADABLE;
		return false;
	}
	*value = at + (uint64_t)(int64_t)cell->add;
	return true;
}

static inline void window_read(struct cfi_step *step)
{
	step->window = step->cfa - WINDOW_BYTES;
	step->has_window = page_walk_read(step->memory, (gva_t){step->window}, step->data, WINDOW_BYTES);
}

/* The registers of the caller that have cells. */
struct caller {
	uint64_t values[CFI_CELLS_MAX]; /* by cell */
	uint64_t sp, ip;
	bool is_first;    /* there is none */
	uint32_t changed; /* a bit for each with a cell */
	uint32_t known;   /* those of them that could be found */
};

static bool caller_find(struct cfi_step *step, const struct cfi_cell *cells, struct caller *caller,
                        enum unwind_end *end)
{
	enum unwind_end why;

	caller->sp = step->cfa;
	caller->known = BIT(CFI_SP);
	caller->changed = BIT(CFI_SP);
	caller->ip = 0;
	caller->is_first = false;
	for (unsigned i = 1; i < cells[0].count; i++) {
		const uint8_t target = cells[i].target;

		if (cells[i].how == CFI_SAME)
			continue;
		caller->changed |= BIT(target);
		caller->known &= ~BIT(target);
		caller->is_first |= cells[i].how == CFI_UNDEFINED && target == CFI_RETURN;
		if (cells[i].how == CFI_UNDEFINED)
			continue;
		if (cell_value(step, &cells[i], &caller->values[i], &why)) {
			caller->known |= BIT(target);
		} else if (target == CFI_SP || target == CFI_RETURN) {
			*end = why;
			return false;
		}
		if (target == CFI_SP)
			caller->sp = caller->values[i];
		else if (target == CFI_RETURN)
			caller->ip = caller->values[i];
	}
	return true;
}

static const struct cfi_arch *arch_of(const struct frame *frame)
{
	return processor_of(frame->processor)->frames->cfi;
}

/* Registers without a cell keep their values if the ABI has them preserved, or nothing was called. */
static void frame_become(struct frame *frame, const struct caller *caller, const struct cfi_cell *cells, bool signal)
{
	for (unsigned i = 1; i < cells[0].count; i++)
		if (caller->known & BIT(cells[i].target) && cells[i].how != CFI_SAME)
			frame->registers[cells[i].target] = caller->values[i];
	frame->registers[CFI_SP] = caller->sp;
	frame->known &= signal ? UINT32_MAX : arch_of(frame)->preserved;
	frame->known = (frame->known & ~caller->changed) | caller->known;
	/* The call has changed the link register; where it returns to is the caller's place. */
	if (arch_of(frame)->links)
		frame->known &= ~BIT(CFI_RETURN);
	frame->ip = caller->ip;
	frame->sp = caller->sp;
	frame->bp = frame->known & BIT(CFI_FP) ? frame->registers[CFI_FP] : 0;
	frame->scratch = false;
	frame->exact = signal;
}

static enum step step_by_cells(const struct cfi_cell *cells, struct page_walk *memory, struct frame *frame,
                               enum unwind_end *end)
{
	/* With a link register, Linux leaves the record of a caller for a signal's handler, not the interrupted place.
	 */
	const bool signal = cells[0].target == CFI_CFA_SIGNAL && !arch_of(frame)->links;
	struct cfi_step step;
	struct caller caller;

	step.memory = memory;
	step.frame = frame;
	step.cfa = 0;
	step.has_window = false;
	if (!cell_value(&step, &cells[0], &step.cfa, end))
		return STEP_DONE;
	window_read(&step);
	if (!caller_find(&step, cells, &caller, end))
		return STEP_DONE;
	if (caller.is_first)
		return step_done(end, UNWIND_END_OF_STACK);
	/* Stacks grow down, and only a signal may have another one. vfork(2) takes its return address off the stack. */
	if (!(caller.known & BIT(CFI_RETURN)) || !(caller.known & BIT(CFI_SP)) ||
	    (!signal && (caller.sp < frame->sp || (caller.sp == frame->sp && !frame->exact))))
		return step_done(end, UNWIND_BAD_FRAME);
	/* The first function of a thread has no return address; where one is 0, the table or the stack is wrong. */
	if (caller.ip == 0)
		return step_done(end, UNWIND_BAD_FRAME);
	caller.ip = frame_unsigned(frame, caller.ip);
	frame_become(frame, &caller, cells, signal);
	return STEP_MORE;
}

const struct cfi_cell *unwind_cells_find(const struct user_code *code, uint64_t address, enum unwind_end *end)
{
	const struct user_range *range = code ? user_code_find(code, address) : NULL;
	const struct cfi_cell *cells = NULL;
	uint32_t why = CFI_NONE;

	if (!range) {
		*end = UNWIND_BAD_FRAME;
		return NULL;
	}
	if (range->table)
		cells = cfi_table_find(range->table, address - range->start + range->file_offset, &why);
	if (!cells)
		*end = why == CFI_UNKNOWN ? UNWIND_NO_FORM : UNWIND_NO_ENTRY;
	return cells;
}

/* What a call chain ends with where neither cells nor frames lead on: a register that is no frame pointer is no wonder.
 */
static enum step step_failed(enum unwind_end *end, enum unwind_end why)
{
	if (*end == UNWIND_BAD_FRAME || *end == UNWIND_UNREADABLE)
		*end = why;
	return STEP_DONE;
}

enum step unwind_user_step(const struct user_code *code, struct page_walk *memory, struct frame *frame,
                           enum unwind_end *end)
{
	/* A return address may lie behind the last instruction of its function: ask about the call before it. */
	enum unwind_end why;
	const struct cfi_cell *cells = unwind_cells_find(code, frame->exact ? frame->ip : frame->ip - 1, &why);

	/* After a step by a record, cells that count from the stack pointer do not help. */
	if (cells && (!arch_of(frame)->links || frame->known & BIT(cells[0].base)))
		return step_by_cells(cells, memory, frame, end);
	if (processor_of(frame->processor)->frames->user_step(code, memory, frame, end) == STEP_MORE)
		return STEP_MORE;
	return step_failed(end, cells ? *end : why);
}
