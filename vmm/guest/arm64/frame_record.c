// SPDX-License-Identifier: BSD-2-Clause
/*
 * The frame records of AAPCS64 (6.4.6): X29 points at the caller's X29, with the return address above it. A function
 * that has no record yet, or has given it up, or never makes one (a leaf), has its return address in X30; its code
 * tells.
 */
#include "guest/arm64/frame_arm64.h"
#include "guest/processor.h"
#include "lib/symbol/arm64/cfi_arm64.h"

/* Code from the start of a function to the interrupted instruction, and from there on. */
#define CODE_WORDS 256u
#define AHEAD_WORDS 8u

#define RET UINT32_C(0xd65f03c0)
#define RETAA UINT32_C(0xd65f0bff)
#define RETAB UINT32_C(0xd65f0fff)
#define BL_OFFSET_BITS 26u

static bool is_ret(uint32_t word)
{
	return word == RET || word == RETAA || word == RETAB;
}

/* STP or LDP X29, X30, [SP...], with or without write-back (Arm ARM, C6.2). */
static bool is_pair(uint32_t word, bool load)
{
	const uint32_t mode = word >> 23 & 3; /* post-index, offset, pre-index */

	return (word & 0xfe407fff) == (UINT32_C(0xa8007bfd) | (uint32_t)load << 22) && mode != 0;
}

/* ADD X29, SP, #n, of which MOV X29, SP is one. */
static bool is_frame_set(uint32_t word)
{
	return (word & 0xff8003ff) == 0x910003fd;
}

/* B, BL, BR, BLR, CBZ, TBZ, B.cond: where the next instruction is not the next word. */
static bool is_branch(uint32_t word)
{
	return (word & 0x7c000000) == 0x14000000 || (word & 0xfe000000) == 0xd6000000 ||
	       (word & 0x7e000000) == 0x34000000 || (word & 0x7e000000) == 0x36000000 ||
	       (word & 0xff000000) == 0x54000000;
}

/* Whether the next instructions make the record, or return without having to give it up. */
static bool is_outside_record(struct page_walk *memory, uint64_t pc)
{
	uint32_t word;

	for (unsigned i = 0; i < AHEAD_WORDS; i++) {
		if (!page_walk_read_code(memory, (gva_t){pc + i * sizeof(word)}, &word, sizeof(word)))
			return false;
		if (is_ret(word) || is_pair(word, false) || is_frame_set(word))
			return true;
		if (is_pair(word, true) || is_branch(word))
			return false;
	}
	return false;
}

/* The function that the BL before `after` calls. */
static bool call_target(struct page_walk *memory, uint64_t after, uint64_t *target)
{
	uint32_t word;

	if (!page_walk_read_code(memory, (gva_t){after - sizeof(word)}, &word, sizeof(word)) || word >> 26 != 0x25)
		return false;
	const int64_t offset = (int64_t)((uint64_t)word << (64 - BL_OFFSET_BITS)) >> (64 - BL_OFFSET_BITS);

	*target = after - sizeof(word) + (uint64_t)offset * sizeof(word);
	return true;
}

/*
 * Whether X30 follows a call of a function that begins a little before the instruction and makes no record up to there.
 * After a call that it has made itself, X30 leads into its own code and not to a call of itself.
 */
static bool is_leaf(struct page_walk *memory, uint64_t pc, uint64_t lr)
{
	uint32_t code[CODE_WORDS];
	uint64_t start;

	if (!call_target(memory, lr, &start) || pc - start >= sizeof(code))
		return false;
	const size_t n = (pc - start) / sizeof(code[0]);

	if (!page_walk_read_code(memory, (gva_t){start}, code, n * sizeof(code[0])))
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_pair(code[i], false))
			return false;
	return true;
}

/* For user space, where call frame information leads on. */
void frame_registers_set(struct frame *frame)
{
	frame->registers[CFI_ARM64_X29] = frame->bp;
	frame->registers[CFI_ARM64_SP] = frame->sp;
	frame->registers[CFI_ARM64_X30] = frame->lr;
	frame->known = 1u << CFI_ARM64_X29 | 1u << CFI_ARM64_SP | 1u << CFI_ARM64_X30;
}

/* The smaller T0SZ or T1SZ (TCR_EL1) leaves the fewer bits for a signature. */
uint64_t frame_return_mask(const struct guest_tables_arm64 *tables)
{
	const uint64_t low = tables->tcr & 63, high = tables->tcr >> 16 & 63;
	const unsigned unused = (unsigned)(low < high ? low : high);

	return tables->mmu && unused > 8 ? ~(UINT64_MAX >> unused) : 0;
}

static void from_registers(const struct guest_regs *regs, struct frame *frame)
{
	*frame = (struct frame){
		.processor = GUEST_ARM64,
		.ip = regs->arm64.pc,
		.sp = regs->arm64.sp,
		.bp = regs->arm64.fp,
		.return_mask = frame_return_mask(&regs->arm64.tables),
		.exact = true,
		.user = regs->arm64.el == 0,
	};

	frame->lr = frame_unsigned(frame, regs->arm64.lr);
	frame_registers_set(frame);
}

static struct guest_regs registers(const struct frame *frame, const struct page_walk *memory)
{
	return (struct guest_regs){
		.processor = GUEST_ARM64,
		.valid = true,
		.arm64 = {.pc = frame->ip, .sp = frame->sp, .fp = frame->bp, .el = 1, .tables = memory->tables.arm64}};
}

static void frame_return_to(struct frame *frame, uint64_t ip, uint64_t fp)
{
	frame->callee = frame->ip;
	frame->ip = ip;
	frame->bp = fp;
	frame->exact = false;
	/* A record does not say where the stack pointer was. */
	frame->registers[CFI_ARM64_X29] = fp;
	frame->known = 1u << CFI_ARM64_X29;
}

/* In the first instructions of an exception's entry, X29 and X30 are still those of user space, the lower half. */
static bool is_of_mode(const struct frame *frame, uint64_t address)
{
	return frame->user || address >> 63 != 0;
}

static bool is_mapped(struct page_walk *memory, uint64_t ip)
{
	gpa_t gpa;

	return page_walk_translate(memory, (gva_t){ip}, &gpa);
}

/* `config` NULL: in user space. */
static enum step record_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                             enum unwind_end *end)
{
	struct {
		uint64_t fp, lr;
	} record;
	enum step step;

	if (frame->exact && frame->lr != 0 && is_of_mode(frame, frame->lr) &&
	    (is_outside_record(memory, frame->ip) || is_leaf(memory, frame->ip, frame->lr))) {
		frame_return_to(frame, frame->lr, frame->bp);
		return STEP_MORE;
	}
	if (frame->bp == 0 || !is_of_mode(frame, frame->bp))
		return step_done(end, UNWIND_END_OF_STACK);
	if (frame->bp % sizeof(uint64_t) != 0)
		return step_done(end, UNWIND_BAD_FRAME);
	if (!page_walk_read(memory, (gva_t){frame->bp}, &record, sizeof(record)))
		return step_done(end, UNWIND_UNREADABLE);
	if (record.lr == 0) {
		/* The outermost record of the kernel is empty, maybe that of an exception. */
		if (!frame->user && record.fp == 0 && config && config->system &&
		    config->system->entered(config, memory, frame, &step, end))
			return step;
		return step_done(end, UNWIND_END_OF_STACK);
	}
	/* Records are further up the stack, but where the kernel changes stacks. */
	if (record.fp == frame->bp || (frame->user && record.fp != 0 && record.fp < frame->bp))
		return step_done(end, UNWIND_BAD_FRAME);
	const uint64_t ip = frame_unsigned(frame, record.lr);

	if (frame->user && !is_mapped(memory, ip))
		return step_done(end, UNWIND_BAD_FRAME);
	frame_return_to(frame, ip, record.fp);
	return STEP_MORE;
}

static enum step kernel_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                             enum unwind_end *end)
{
	return record_step(config, memory, frame, end);
}

static enum step user_step(const struct user_code *code G_GNUC_UNUSED, struct page_walk *memory, struct frame *frame,
                           enum unwind_end *end)
{
	return record_step(NULL, memory, frame, end);
}

/* The link register leads on (record_step). */
static bool leave(struct guest *guest G_GNUC_UNUSED, struct guest_regs *regs G_GNUC_UNUSED)
{
	return false;
}

const struct processor_frames frames_arm64 = {
	.cfi = &cfi_arm64,
	.from_registers = from_registers,
	.registers = registers,
	.kernel_step = kernel_step,
	.user_step = user_step,
	.leave = leave,
};
