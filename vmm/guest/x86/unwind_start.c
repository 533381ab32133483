// SPDX-License-Identifier: BSD-2-Clause
/* One step in user space, in code without call frame information: by frame pointers, and at the start of programs. */
#include <string.h>

#include "guest/x86/frame_x86.h"
#include "lib/symbol/x86/cfi_x86.h"

#define RET 0xc3
/* What a step by frame pointers leaves. */
#define KNOWN_BY_FRAME_POINTER (1u << CFI_RSP | 1u << CFI_RBP | 1u << CFI_RIP)

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
	    !unwind_cells_find(code, saved.ip - 1, &end))
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

	if (!page_walk_read(memory, (gva_t){at}, &ip, sizeof(ip)) || !unwind_cells_find(code, ip - 1, &end))
		return false;
	frame_return(frame, ip, at + sizeof(ip), frame->bp);
	return true;
}

enum step unwind_start_step(const struct user_code *code, struct page_walk *memory, struct frame *frame,
                            enum unwind_end *end)
{
	if (!step_from_start(code, memory, frame) && unwind_frame_pointer_step(NULL, memory, frame, end) == STEP_DONE &&
	    (*end != UNWIND_BAD_FRAME || !step_by_one_frame(code, memory, frame)))
		return STEP_DONE;
	frame->registers[CFI_RIP] = frame->ip;
	frame->registers[CFI_RSP] = frame->sp;
	frame->registers[CFI_RBP] = frame->bp;
	frame->known = KNOWN_BY_FRAME_POINTER;
	return STEP_MORE;
}
