// SPDX-License-Identifier: BSD-2-Clause
/* One step by ORC; the rules are those of unwind_next_frame in arch/x86/kernel/unwind_orc.c. */
#include <string.h>

#include "guest/frame.h"

#define STACK_BYTES (UINT64_C(32) << 10) /* of a thread or an interrupt: 16 KiB, with KASAN 32 */

/* Of a retpoline: its CALL, the most that its trap has (PAUSE; LFENCE; JMP, up to 6.2), and its MOV. */
#define RETPOLINE_CALL_BYTES 5u
#define RETPOLINE_TRAP_MAX 7u
#define RETPOLINE_MOV_BYTES 4u

static bool read_word(struct page_walk *memory, uint64_t at, uint64_t *word)
{
	return page_walk_read(memory, (gva_t){at}, word, sizeof(*word));
}

static uint64_t offset_add(uint64_t base, int16_t offset)
{
	return base + (uint64_t)(int64_t)offset;
}

/* The stack pointer of the caller, or where the saved registers lie; 0 for a rule that this frame cannot answer. */
static bool stack_pointer(const struct orc_entry *entry, struct page_walk *memory, const struct frame *frame,
                          uint64_t *sp, enum unwind_end *end)
{
	const uint64_t scratch[] = {
		[ORC_REG_AX] = frame->ax,   [ORC_REG_DX] = frame->dx,   [ORC_REG_DI] = frame->di,
		[ORC_REG_R10] = frame->r10, [ORC_REG_R13] = frame->r13,
	};

	*end = UNWIND_UNREADABLE;
	switch (entry->sp_reg) {
	case ORC_REG_SP:
		*sp = offset_add(frame->sp, entry->sp_offset);
		return true;
	case ORC_REG_BP:
		*sp = offset_add(frame->bp, entry->sp_offset);
		return true;
	case ORC_REG_BP_INDIRECT:
		return read_word(memory, offset_add(frame->bp, entry->sp_offset), sp);
	case ORC_REG_SP_INDIRECT:
		if (!read_word(memory, frame->sp, sp))
			return false;
		*sp = offset_add(*sp, entry->sp_offset);
		return true;
	case ORC_REG_AX:
	case ORC_REG_DX:
	case ORC_REG_DI:
	case ORC_REG_R10:
	case ORC_REG_R13:
		*end = UNWIND_BAD_FRAME;
		*sp = scratch[entry->sp_reg];
		return frame->scratch;
	default:
		*end = UNWIND_NO_ENTRY;
		return false;
	}
}

static bool frame_pointer(const struct orc_entry *entry, struct page_walk *memory, const struct frame *frame,
                          uint64_t caller_sp, uint64_t *bp)
{
	switch (entry->bp_reg) {
	case ORC_REG_PREV_SP:
		return read_word(memory, offset_add(caller_sp, entry->bp_offset), bp);
	case ORC_REG_BP:
		return read_word(memory, offset_add(frame->bp, entry->bp_offset), bp);
	default: /* undefined: the function left it alone */
		*bp = frame->bp;
		return true;
	}
}

static enum step step_call(const struct orc_entry *entry, struct page_walk *memory, struct frame *frame, uint64_t sp,
                           enum unwind_end *end)
{
	uint64_t ip, bp;

	if (!read_word(memory, sp - sizeof(uint64_t), &ip) || !frame_pointer(entry, memory, frame, sp, &bp))
		return step_done(end, UNWIND_UNREADABLE);
	if (ip == 0 || sp == frame->sp)
		return step_done(end, UNWIND_BAD_FRAME);
	frame->ip = ip;
	frame->sp = sp;
	frame->bp = bp;
	frame->scratch = false;
	frame->exact = false;
	return STEP_MORE;
}

/* The entry code may have saved rbp before its pt_regs is complete: the rule of the entry knows where. */
static enum step step_interrupt(const struct orc_entry *entry, struct page_walk *memory, struct frame *frame,
                                uint64_t at, enum unwind_end *end)
{
	uint64_t bp;

	if (!frame_pointer(entry, memory, frame, at, &bp) || !frame_from_interrupt(memory, at, frame))
		return step_done(end, UNWIND_UNREADABLE);
	frame->bp = bp;
	return STEP_MORE;
}

/* Searches the kernel's own table, then those of modules. */
static bool entry_find(const struct orc *orc, const struct module_table *modules, struct page_walk *memory,
                       uint64_t address, struct orc_entry *entry)
{
	const struct orc_entry *known = orc_find(orc, address);

	if (!known)
		return modules && module_orc_find(modules, orc, memory, address, entry);
	*entry = *known;
	return true;
}

/*
 * Code that is not in the table, such as the output of the BPF compiler or sections outside of functions
 * (.altinstr_aux), may keep frame pointers. The kernel's own unwinder tries them, too; here the result is trusted only
 * for a frame on this stack with a caller that is in the table.
 */
static enum step step_guess(const struct orc *orc, const struct module_table *modules, struct page_walk *memory,
                            struct frame *frame, enum unwind_end *end)
{
	struct frame caller = *frame;
	struct orc_entry entry;

	if (frame->bp - frame->sp >= STACK_BYTES || unwind_frame_pointer_step(memory, &caller, end) == STEP_DONE ||
	    caller.user || !entry_find(orc, modules, memory, caller.exact ? caller.ip : caller.ip - 1, &entry) ||
	    entry.type == ORC_UNDEFINED)
		return step_done(end, UNWIND_NO_ENTRY);
	*frame = caller;
	return STEP_MORE;
}

/* MOV %reg,(%rsp) of any 64-bit register. */
static bool is_store_to_stack(const uint8_t code[RETPOLINE_MOV_BYTES])
{
	return (code[0] & 0xfb) == 0x48 && code[1] == 0x89 && (code[2] & 0xc7) == 0x04 && code[3] == 0x24;
}

/*
 * A retpoline (RETPOLINE in arch/x86/lib/retpoline.S) is CALL 1f; a trap for speculation; 1: MOV %reg,(%rsp); RET. It
 * has unwind entries from the RET on only. At its CALL the return address is at RSP; at its MOV it is above the word
 * that the CALL has pushed, which points behind the CALL.
 */
static bool retpoline_find(struct page_walk *memory, const struct frame *frame, uint64_t *at)
{
	uint8_t code[RETPOLINE_CALL_BYTES + RETPOLINE_TRAP_MAX + RETPOLINE_MOV_BYTES];
	uint32_t trap;
	uint64_t pushed;

	if (!frame->exact || !page_walk_read(memory, (gva_t){frame->ip}, code, sizeof(code)))
		return false;
	if (is_store_to_stack(code)) {
		*at = frame->sp + sizeof(pushed);
		return read_word(memory, frame->sp, &pushed) && frame->ip - pushed - 1 < RETPOLINE_TRAP_MAX;
	}
	memcpy(&trap, code + 1, sizeof(trap));
	*at = frame->sp;
	return code[0] == 0xe8 && trap - 1 < RETPOLINE_TRAP_MAX &&
	       is_store_to_stack(code + RETPOLINE_CALL_BYTES + trap);
}

/* False where the frame is not in a retpoline, or the caller is not in the table. */
static bool step_retpoline(const struct orc *orc, const struct module_table *modules, struct page_walk *memory,
                           struct frame *frame)
{
	struct orc_entry entry;
	uint64_t at, ip;

	if (!retpoline_find(memory, frame, &at) || !read_word(memory, at, &ip) ||
	    !entry_find(orc, modules, memory, ip - 1, &entry) || entry.type == ORC_UNDEFINED)
		return false;
	frame->ip = ip;
	frame->sp = at + sizeof(ip);
	frame->scratch = false;
	frame->exact = false;
	return true;
}

enum step unwind_orc_step(const struct orc *orc, const struct module_table *modules, struct page_walk *memory,
                          struct frame *frame, enum unwind_end *end)
{
	struct orc_entry entry;
	uint64_t sp;

	/* A return address may lie behind the last instruction of its function: ask about the call before it. */
	if (!entry_find(orc, modules, memory, frame->exact ? frame->ip : frame->ip - 1, &entry))
		entry.type = ORC_UNDEFINED;
	/* Up to 6.2, the entry of a retpoline says that the stack ends there. */
	if ((entry.type == ORC_UNDEFINED || entry.type == ORC_END_OF_STACK) &&
	    step_retpoline(orc, modules, memory, frame))
		return STEP_MORE;
	if (entry.type == ORC_UNDEFINED)
		return step_guess(orc, modules, memory, frame, end);
	if (entry.type == ORC_END_OF_STACK)
		return step_done(end, UNWIND_END_OF_STACK);
	if (!stack_pointer(&entry, memory, frame, &sp, end))
		return STEP_DONE;
	switch (entry.type) {
	case ORC_CALL:
		return step_call(&entry, memory, frame, sp, end);
	case ORC_REGS:
		if (!frame_from_pt_regs(memory, sp, frame))
			return step_done(end, UNWIND_UNREADABLE);
		break;
	default:
		if (step_interrupt(&entry, memory, frame, sp, end) == STEP_DONE)
			return STEP_DONE;
		break;
	}
	return frame->ip == 0 ? step_done(end, UNWIND_BAD_FRAME) : STEP_MORE;
}
