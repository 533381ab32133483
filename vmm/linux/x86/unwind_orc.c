// SPDX-License-Identifier: BSD-2-Clause
/* One step by ORC; the rules are those of unwind_next_frame in arch/x86/kernel/unwind_orc.c. */
#include <string.h>

#include "guest/x86/frame_x86.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/x86/entry_regs.h"
#include "linux/x86/orc_entry.h"

#define STACK_BYTES (UINT64_C(32) << 10) /* of a thread or an interrupt: 16 KiB, with KASAN 32 */

/* Of a retpoline: its CALL, the most that its trap has (PAUSE; LFENCE; JMP, up to 6.2), and its MOV. */
#define RETPOLINE_CALL_BYTES 5u
#define RETPOLINE_TRAP_MAX 7u
#define RETPOLINE_MOV_BYTES 4u
#define CALL_BYTES_MAX 7u /* by a pointer in a table: opcode, ModRM, SIB, disp32 */

#define FUNCTION_ALIGNMENT 16u
#define ERROR_ENTRY_BEGIN_BYTES 16u /* PUSH %rsi; MOV 8(%rsp),%rsi; MOV %rdi,8(%rsp): PUSH_REGS with save_ret */
#define SWITCH_FRAME_BYTES 56       /* __switch_to_asm's: struct inactive_task_frame */
#define FILL_CALLS 2u
#define FILL_CALL_BYTES 6u /* CALL rel32; INT3 */
#define FILL_MOV_BYTES 7u  /* MOV $imm32,%reg */
#define TEST_BYTES_MAX 8u  /* TESTB $imm8, disp32 */
#define JUMP_BYTES_MAX 6u  /* JNE rel32 */

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
		[ORC_REG_AX] = frame->registers[CFI_RAX],  [ORC_REG_DX] = frame->registers[CFI_RDX],
		[ORC_REG_DI] = frame->registers[CFI_RDI],  [ORC_REG_R10] = frame->registers[CFI_R10],
		[ORC_REG_R13] = frame->registers[CFI_R13],
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

/*
 * A RET, or what Linux patches it to: a CALL that does not return, in a return thunk (srso_return_thunk); behind it is
 * INT3 or UD2.
 */
static bool is_return(struct page_walk *memory, uint64_t ip)
{
	uint8_t code[RETPOLINE_CALL_BYTES + 2];
	const uint8_t *behind = code + RETPOLINE_CALL_BYTES;

	return page_walk_read(memory, (gva_t){ip}, code, sizeof(code)) &&
	       (code[0] == 0xc3 ||
	        (code[0] == 0xe8 && (behind[0] == 0xcc || (behind[0] == 0x0f && behind[1] == 0x0b))));
}

/* CALL rel32, or CALL by a register or through memory, in any of its lengths. */
static bool is_behind_call(struct page_walk *memory, uint64_t ip)
{
	uint8_t code[CALL_BYTES_MAX];

	if (!page_walk_read(memory, (gva_t){ip - sizeof(code)}, code, sizeof(code)))
		return true;
	for (size_t i = 0; i + 1 < sizeof(code); i++)
		if (code[i] == 0xff && (code[i + 1] & 0x38) == 0x10)
			return true;
	return code[sizeof(code) - RETPOLINE_CALL_BYTES] == 0xe8;
}

/*
 * Some returns go to a function that has not begun: its first instruction is what runs next. The RET of a retpoline
 * goes to the function that is called, and a new task's first return, from __switch_to, to ret_from_fork.
 */
static bool returns_into_function(struct page_walk *memory, const struct frame *frame, uint64_t ip)
{
	return (ip % FUNCTION_ALIGNMENT == 0 || (frame->exact && is_return(memory, frame->ip))) &&
	       !is_behind_call(memory, ip);
}

static enum step step_call(const struct orc_entry *entry, struct page_walk *memory, struct frame *frame, uint64_t sp,
                           enum unwind_end *end)
{
	uint64_t ip, bp;

	if (!read_word(memory, sp - sizeof(uint64_t), &ip) || !frame_pointer(entry, memory, frame, sp, &bp))
		return step_done(end, UNWIND_UNREADABLE);
	if (ip == 0 || sp == frame->sp)
		return step_done(end, UNWIND_BAD_FRAME);
	const bool exact = returns_into_function(memory, frame, ip);

	frame_return(frame, ip, sp, bp);
	frame->exact = exact;
	return STEP_MORE;
}

/* The entry code may have saved rbp before its pt_regs is complete: the rule of the entry knows where. */
static enum step step_interrupt(const struct orc_entry *entry, struct page_walk *memory, struct frame *frame,
                                uint64_t at, enum unwind_end *end)
{
	uint64_t bp;

	if (!frame_pointer(entry, memory, frame, at, &bp) || !frame_from_interrupt(memory, at, frame))
		return step_done(end, UNWIND_UNREADABLE);
	frame->bp = frame->registers[CFI_RBP] = bp;
	return STEP_MORE;
}

/*
 * Behind the CALL of error_entry (idtentry_body in arch/x86/entry/entry_64.S), a whole struct pt_regs is where the
 * stack pointer is. Until the MOV %rax,%rsp there has changed to the task's stack, the table has the rule from before
 * the CALL. That is right only while error_entry itself has saved nothing.
 */
static bool is_behind_error_entry(struct page_walk *memory, const struct frame *frame)
{
	static const uint8_t mov[] = {0x48, 0x89, 0xc4};
	uint8_t code[RETPOLINE_CALL_BYTES + sizeof(mov)];
	int32_t distance;

	if (!page_walk_read(memory, (gva_t){frame->ip - RETPOLINE_CALL_BYTES}, code, sizeof(code)) || code[0] != 0xe8 ||
	    memcmp(code + RETPOLINE_CALL_BYTES, mov, sizeof(mov)) != 0)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	return frame->callee - (frame->ip + (uint64_t)(int64_t)distance) >= ERROR_ENTRY_BEGIN_BYTES;
}

/*
 * __switch_to_asm fills the processor's return stack buffer by calls within itself (__FILL_RETURN_BUFFER in
 * arch/x86/include/asm/nospec-branch.h): MOV $n,%reg; CALL 1f; INT3; 1: CALL 2f; INT3; 2: ADD $16,%rsp. That is one of
 * two alternatives, and the table may be right for the other one only: what is on the stack follows from the code.
 */
static void fix_switch(struct page_walk *memory, const struct frame *frame, struct orc_entry *entry)
{
	static const uint8_t calls[] = {0xe8, 1, 0, 0, 0, 0xcc, 0xe8, 1, 0, 0, 0, 0xcc};
	uint8_t code[FILL_MOV_BYTES + sizeof(calls)];

	if (!frame->exact || entry->sp_reg != ORC_REG_SP || entry->sp_offset < SWITCH_FRAME_BYTES ||
	    entry->bp_reg != ORC_REG_PREV_SP || entry->bp_offset != -2 * (int)sizeof(uint64_t))
		return;
	for (unsigned done = 0; done <= FILL_CALLS; done++) {
		uint64_t mov = frame->ip - done * FILL_CALL_BYTES - FILL_MOV_BYTES;

		if (page_walk_read(memory, (gva_t){mov}, code, sizeof(code)) && (code[0] & 0xfe) == 0x48 &&
		    code[1] == 0xc7 && memcmp(code + FILL_MOV_BYTES, calls, sizeof(calls)) == 0)
			entry->sp_offset = (int16_t)(SWITCH_FRAME_BYTES + done * sizeof(uint64_t));
	}
}

/* Searches the kernel's own table, then those of modules. */
static bool entry_find(const struct unwind_tables *orc, const struct module_table *modules, struct page_walk *memory,
                       uint64_t address, struct orc_entry *entry)
{
	const struct orc_entry *known = orc_find(orc, address);

	if (!known)
		return modules && module_orc_find(modules, orc, memory, address, entry);
	*entry = *known;
	return true;
}

/*
 * Until Linux has patched itself, it tests the processor's features out of line, in code that is not in the table
 * (.altinstr_aux; _static_cpu_has in arch/x86/include/asm/cpufeature.h): TESTB; JNE; JMP, to places in one function.
 */
static bool feature_test_find(struct page_walk *memory, uint64_t ip, uint64_t *function)
{
	uint8_t code[TEST_BYTES_MAX + JUMP_BYTES_MAX];
	const uint8_t *end = code;
	int32_t distance;

	if (!page_walk_read(memory, (gva_t){ip}, code, sizeof(code)))
		return false;
	if (code[0] == 0xf6 && code[1] == 0x05) /* by RIP */
		end += TEST_BYTES_MAX - 1;
	else if (code[0] == 0xf6 && code[1] == 0x04) /* by SIB */
		end += TEST_BYTES_MAX;
	if (end[0] == 0x0f && end[1] == 0x85)
		end += JUMP_BYTES_MAX;
	else if (end[0] == 0xe9)
		end += JUMP_BYTES_MAX - 1;
	else
		return false;
	memcpy(&distance, end - sizeof(distance), sizeof(distance));
	*function = ip + (uint64_t)(end - code) + (uint64_t)(int64_t)distance;
	return true;
}

/* The rule of a frame; false if it has none. */
static bool frame_entry_find(const struct unwind_tables *orc, const struct module_table *modules,
                             struct page_walk *memory, const struct frame *frame, struct orc_entry *entry)
{
	uint64_t function;

	/* A return address may lie behind the last instruction of its function: ask about the call before it. */
	if (entry_find(orc, modules, memory, frame->exact ? frame->ip : frame->ip - 1, entry) &&
	    entry->type != ORC_UNDEFINED)
		return true;
	return frame->exact && feature_test_find(memory, frame->ip, &function) &&
	       entry_find(orc, modules, memory, function, entry) && entry->type != ORC_UNDEFINED;
}

/*
 * Code that is not in the table, such as the output of the BPF compiler, may keep frame pointers. The kernel's own
 * unwinder tries them, too; here the result is trusted only for a frame on this stack with a caller that is in the
 * table.
 */
static enum step step_guess(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                            enum unwind_end *end)
{
	const struct unwind_tables *orc = config->tables;
	const struct module_table *modules = config->modules;
	struct frame caller = *frame;
	struct orc_entry entry;

	if (frame->bp - frame->sp >= STACK_BYTES ||
	    unwind_frame_pointer_step(config, memory, &caller, end) == STEP_DONE || caller.user ||
	    !entry_find(orc, modules, memory, caller.exact ? caller.ip : caller.ip - 1, &entry) ||
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
	struct orc_entry entry;
	uint64_t pushed;

	if (!frame->exact || !unwind_orc_retpoline(memory, frame->ip, &entry))
		return false;
	*at = frame->sp + (uint64_t)entry.sp_offset - sizeof(pushed);
	return *at == frame->sp ||
	       (read_word(memory, frame->sp, &pushed) && frame->ip - pushed - 1 < RETPOLINE_TRAP_MAX);
}

bool unwind_orc_retpoline(struct page_walk *memory, uint64_t ip, struct orc_entry *entry)
{
	uint8_t code[RETPOLINE_CALL_BYTES + RETPOLINE_TRAP_MAX + RETPOLINE_MOV_BYTES];
	uint32_t trap;

	if (!page_walk_read_code(memory, (gva_t){ip}, code, sizeof(code)))
		return false;
	const bool at_store = is_store_to_stack(code);

	memcpy(&trap, code + 1, sizeof(trap));
	*entry = (struct orc_entry){
		.sp_reg = ORC_REG_SP, .sp_offset = (int16_t)((at_store ? 2 : 1) * sizeof(uint64_t)), .type = ORC_CALL};
	return at_store || (code[0] == 0xe8 && trap - 1 < RETPOLINE_TRAP_MAX &&
	                    is_store_to_stack(code + RETPOLINE_CALL_BYTES + trap));
}

/* False where the frame is not in a retpoline, or the caller is not in the table. */
static bool step_retpoline(const struct unwind_tables *orc, const struct module_table *modules,
                           struct page_walk *memory, struct frame *frame)
{
	struct orc_entry entry;
	uint64_t at, ip;

	if (!retpoline_find(memory, frame, &at) || !read_word(memory, at, &ip) ||
	    !entry_find(orc, modules, memory, ip - 1, &entry) || entry.type == ORC_UNDEFINED)
		return false;
	frame_return(frame, ip, at + sizeof(ip), frame->bp);
	return true;
}

enum step unwind_orc_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                          enum unwind_end *end)
{
	const struct unwind_tables *orc = config->tables;
	const struct module_table *modules = config->modules;
	struct orc_entry entry;
	uint64_t sp;

	if (!frame_entry_find(orc, modules, memory, frame, &entry))
		entry.type = ORC_UNDEFINED;
	/* Up to 6.2, the entry of a retpoline says that the stack ends there. */
	if ((entry.type == ORC_UNDEFINED || entry.type == ORC_END_OF_STACK) &&
	    step_retpoline(orc, modules, memory, frame))
		return STEP_MORE;
	if (entry.type == ORC_UNDEFINED)
		return step_guess(config, memory, frame, end);
	if (entry.type == ORC_END_OF_STACK)
		return step_done(end, UNWIND_END_OF_STACK);
	fix_switch(memory, frame, &entry);
	if (!stack_pointer(&entry, memory, frame, &sp, end))
		return STEP_DONE;
	if (entry.type == ORC_REGS_PARTIAL && is_behind_error_entry(memory, frame)) {
		entry.type = ORC_REGS;
		sp = frame->sp;
	}
	switch (entry.type) {
	case ORC_CALL:
		return step_call(&entry, memory, frame, sp, end);
	case ORC_REGS:
		if (!frame_from_entry_regs(memory, sp, frame))
			return step_done(end, UNWIND_UNREADABLE);
		break;
	default:
		if (step_interrupt(&entry, memory, frame, sp, end) == STEP_DONE)
			return STEP_DONE;
		break;
	}
	return frame->ip == 0 ? step_done(end, UNWIND_BAD_FRAME) : STEP_MORE;
}
