// SPDX-License-Identifier: BSD-2-Clause
/*
 * One step in user space: by the call frame information of the file that the code is from (lib/symbol/cfi.h), and by
 * frame pointers, or the frame records of arm64, where there is none. The tables come from other processes; what they
 * say is only used as an address to read at.
 */
#include <string.h>

#include "guest/frame.h"

#define RET 0xc3
#define BIT(name) (1u << (name))
/* What a step by frame pointers leaves. */
#define KNOWN_BY_FRAME_POINTER (BIT(CFI_RSP) | BIT(CFI_RBP) | BIT(CFI_RIP))

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
	caller->known = BIT(CFI_RSP);
	caller->changed = BIT(CFI_RSP);
	caller->ip = 0;
	caller->is_first = false;
	for (unsigned i = 1; i < cells[0].count; i++) {
		const uint8_t target = cells[i].target;

		if (cells[i].how == CFI_SAME)
			continue;
		caller->changed |= BIT(target);
		caller->known &= ~BIT(target);
		caller->is_first |= cells[i].how == CFI_UNDEFINED && target == CFI_RIP;
		if (cells[i].how == CFI_UNDEFINED)
			continue;
		if (cell_value(step, &cells[i], &caller->values[i], &why)) {
			caller->known |= BIT(target);
		} else if (target == CFI_RSP || target == CFI_RIP) {
			*end = why;
			return false;
		}
		if (target == CFI_RSP)
			caller->sp = caller->values[i];
		else if (target == CFI_RIP)
			caller->ip = caller->values[i];
	}
	return true;
}

static const struct cfi_arch *arch_of(const struct frame *frame)
{
	return frame->processor == GUEST_ARM64 ? &cfi_arm64 : &cfi_x86_64;
}

/* Registers without a cell keep their values if the ABI has them preserved, or nothing was called. */
static void frame_become(struct frame *frame, const struct caller *caller, const struct cfi_cell *cells, bool signal)
{
	for (unsigned i = 1; i < cells[0].count; i++)
		if (caller->known & BIT(cells[i].target) && cells[i].how != CFI_SAME)
			frame->registers[cells[i].target] = caller->values[i];
	frame->registers[CFI_RSP] = caller->sp;
	frame->known &= signal ? UINT32_MAX : arch_of(frame)->preserved;
	frame->known = (frame->known & ~caller->changed) | caller->known;
	/* The call has changed the link register; where it returns to is the caller's place. */
	if (arch_of(frame)->links)
		frame->known &= ~BIT(CFI_ARM64_X30);
	frame->ip = caller->ip;
	frame->sp = caller->sp;
	frame->bp = frame->known & BIT(CFI_RBP) ? frame->registers[CFI_RBP] : 0;
	frame->scratch = false;
	frame->exact = signal;
}

static enum step step_by_cells(const struct cfi_cell *cells, struct page_walk *memory, struct frame *frame,
                               enum unwind_end *end)
{
	/* Linux for arm64 leaves the record of a caller for a signal's handler, not the interrupted place. */
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
	if (!(caller.known & BIT(CFI_RIP)) || !(caller.known & BIT(CFI_RSP)) ||
	    (!signal && (caller.sp < frame->sp || (caller.sp == frame->sp && !frame->exact))))
		return step_done(end, UNWIND_BAD_FRAME);
	if (caller.ip == 0)
		return step_done(end, UNWIND_END_OF_STACK);
	caller.ip = frame_unsigned(frame, caller.ip);
	frame_become(frame, &caller, cells, signal);
	return STEP_MORE;
}

/*
 * The cells for the instruction at `address`; NULL: there are none, and *end becomes the cause of a chain that ends
 * here.
 */
static const struct cfi_cell *cells_find(const struct user_code *code, uint64_t address, enum unwind_end *end)
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

/*
 * Code that compilers add without information (crtstuff.c of GCC) has frame pointers, but its callers may use rbp for
 * anything: the frame is trusted if its return address is in code that has information.
 */
static bool step_by_one_frame(const struct user_code *code, struct page_walk *memory, struct frame *frame)
{
	struct {
		uint64_t bp, ip;
	} saved;
	enum unwind_end end;

	if (!code || frame->bp < frame->sp || !page_walk_read(memory, (gva_t){frame->bp}, &saved, sizeof(saved)) ||
	    !cells_find(code, saved.ip - 1, &end))
		return false;
	frame_return(frame, saved.ip, frame->bp + sizeof(saved), saved.bp);
	return true;
}

/*
 * True at the first instructions of _init and _fini (crti.S) and of what crtstuff.c adds, and at their RET. A page that
 * is not there yet has been called into.
 */
static bool is_at_start(struct page_walk *memory, uint64_t ip)
{
	static const uint8_t starts[][4] = {
		{0x48, 0x83, 0xec, 0x08}, /* SUB $8,%rsp */
		{0xf3, 0x0f, 0x1e, 0xfa}, /* ENDBR64 */
	};
	static const uint8_t compare[] = {0x80, 0x3d}; /* CMPB, by RIP */
	uint8_t code[sizeof(starts[0])];

	return !page_walk_read_code(memory, (gva_t){ip}, code, sizeof(code)) || code[0] == RET ||
	       memcmp(code, starts[0], sizeof(code)) == 0 || memcmp(code, starts[1], sizeof(code)) == 0 ||
	       memcmp(code, compare, sizeof(compare)) == 0;
}

/*
 * Code of the start has no information in files that have it for the rest, and runs when a program starts, with page
 * faults. Its return address is at rsp, and after SUB $8,%rsp or PUSH %rbp above another word.
 */
static bool step_from_start(const struct user_code *code, struct page_walk *memory, struct frame *frame)
{
	const struct user_range *range = code ? user_code_find(code, frame->ip) : NULL;
	enum unwind_end end;
	uint64_t ip;

	if (!range || !range->table || !frame->exact)
		return false;
	const uint64_t at = frame->sp + (is_at_start(memory, frame->ip) ? 0 : sizeof(ip));

	if (!page_walk_read(memory, (gva_t){at}, &ip, sizeof(ip)) || !cells_find(code, ip - 1, &end))
		return false;
	frame_return(frame, ip, at + sizeof(ip), frame->bp);
	return true;
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
	const struct cfi_cell *cells = cells_find(code, frame->exact ? frame->ip : frame->ip - 1, &why);

	/* After a step by a record, cells that count from the stack pointer do not help. */
	if (cells && (frame->processor != GUEST_ARM64 || frame->known & BIT(cells[0].base)))
		return step_by_cells(cells, memory, frame, end);
	if (frame->processor == GUEST_ARM64)
		return unwind_frame_record_step(memory, frame, 0, end) == STEP_MORE
		               ? STEP_MORE
		               : step_failed(end, cells ? *end : why);
	if (!step_from_start(code, memory, frame) && unwind_frame_pointer_step(memory, frame, end) == STEP_DONE &&
	    (*end != UNWIND_BAD_FRAME || !step_by_one_frame(code, memory, frame)))
		return step_failed(end, why);
	frame->registers[CFI_RIP] = frame->ip;
	frame->registers[CFI_RSP] = frame->sp;
	frame->registers[CFI_RBP] = frame->bp;
	frame->known = KNOWN_BY_FRAME_POINTER;
	return STEP_MORE;
}
