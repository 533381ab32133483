// SPDX-License-Identifier: BSD-2-Clause
/*
 * The search in user space. Which function calls which is not known there: a call is checked by its code, and a
 * function ends where call frame information does. The call of the function at RIP has to be a certain one. Further up,
 * a call need only be possible, so that of a function that runs several times, all chains are found, and none is taken.
 */
#include <string.h>

#include "guest/x86/frame_x86.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/unwind_search.h"
#include "linux/x86/code_place.h"

#define FRAMES_MAX UNWIND_DEPTH_MAX
#define WORDS 512u        /* of a page: the stack is read so */
#define LINKAGE_BYTES 16u /* an entry of the procedure linkage table */
#define CALLED_BYTES 16u  /* of a function, to see whether it is such an entry */
#define PAGE_BYTES (WORDS * sizeof(uint64_t))
/* From the function that is called to the one that runs: what it may take, by jumps and by pointers. */
#define WAY_MAX 8u
#define WAY_OF_JUMP 2u
#define WAY_OF_POINTER 1u
#define SCANNED_BYTES 65536u  /* of a function that may end by a jump, */
#define PIECE_BYTES 4096u     /* and of it at a time */
#define JUMP_BYTES_MAX 6u     /* Jcc, near */
#define POINTER_JUMP_BYTES 6u /* JMP and CALL by a pointer at a distance from RIP */

/* Whether a call leads to a function. */
enum link {
	LINK_DIRECT,   /* it does, maybe by a pointer that has its address: in the procedure linkage table */
	LINK_POSSIBLE, /* by a register or memory, by what it calls jumping there, or it is not known */
	LINK_NONE,     /* it cannot */
};

/* A chain up to a root. */
struct trail {
	uint64_t rsp;
	unsigned n;
	uint64_t ips[FRAMES_MAX]; /* return addresses */
};

struct search {
	const struct unwind_config *config;
	struct page_walk *memory;
	const struct guest_regs *regs;
	unsigned steps; /* left */
	size_t bytes;   /* of code that may still be looked through */
	bool has_found;
	bool has_others; /* which are different chains */
	struct trail found;
};

/* ---- calls ---- */

/* Whether a function may begin there, by its call frame information. */
static bool is_entry(const struct user_code *code, uint64_t start)
{
	enum unwind_end end;
	const struct cfi_cell *cells = unwind_cells_find(code, start, &end);

	return cells && cells[0].how == CFI_VALUE && cells[0].base == CFI_RSP && cells[0].offset == sizeof(uint64_t) &&
	       cells[0].count == 2;
}

/* The same, where what is before is no part of it. */
static bool is_begin(const struct user_code *code, uint64_t start)
{
	enum unwind_end end;

	return is_entry(code, start) &&
	       unwind_cells_find(code, start - 1, &end) != unwind_cells_find(code, start, &end);
}

/* Whether one function has all code between two addresses. */
static bool is_covered(const struct user_code *code, uint64_t from, uint64_t to)
{
	const struct user_range *range = user_code_find(code, from);

	return range && range->table && from <= to && to < range->end &&
	       cfi_table_covers(range->table, from - range->start + range->file_offset,
	                        to - range->start + range->file_offset);
}

/* Whether the function that begins at `start` has the instruction at `ip`. */
static bool is_function(const struct user_code *code, uint64_t start, uint64_t ip)
{
	return is_entry(code, start) && is_covered(code, start, ip);
}

/* The pointer by which a CALL or JMP of POINTER_JUMP_BYTES before `next` goes. */
static bool pointer_read(struct search *search, const uint8_t *jump, uint64_t next, uint64_t *to)
{
	int32_t distance;

	memcpy(&distance, jump + 2, sizeof(distance));
	return page_walk_read_code(search->memory, (gva_t){next + (uint64_t)(int64_t)distance}, to, sizeof(*to));
}

static bool code_read(struct search *search, uint64_t from, void *to, size_t bytes)
{
	return user_text_read(search->config->text, search->config->code, search->memory, from, to, bytes);
}

/* What is called by the instruction before an address. */
static enum code_call call_read(struct search *search, uint64_t return_address, uint64_t *target)
{
	uint8_t code[CODE_CALL_BYTES_MAX];

	return code_read(search, return_address - sizeof(code), code, sizeof(code))
	               ? code_call_of(code, return_address, target)
	               : CODE_CALL_NONE;
}

static enum link link_to(struct search *search, uint64_t target, uint64_t ip, unsigned way);

static size_t endbr_bytes(const uint8_t code[CALLED_BYTES])
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};

	return memcmp(code, endbr, sizeof(endbr)) == 0 ? sizeof(endbr) : 0;
}

/* An entry of the procedure linkage table: JMP by a pointer, maybe behind ENDBR64 and BND. *at: where that is. */
static bool is_linkage(const uint8_t code[CALLED_BYTES], size_t *at)
{
	*at = endbr_bytes(code);
	*at += code[*at] == 0xf2;
	return code[*at] == 0xff && code[*at + 1] == 0x25;
}

/* What it leads to until its first call: PUSH, and on to the dynamic linker. */
static bool is_unbound(const uint8_t code[CALLED_BYTES])
{
	return code[endbr_bytes(code)] == 0x68;
}

/* Of the function that begins at `start`; SCANNED_BYTES at most. */
static size_t function_bytes(const struct search *search, uint64_t start)
{
	size_t low = 0, high = SCANNED_BYTES;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (is_function(search->config->code, start, start + middle))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Where the jump leads that has its distance at byte `i` of `n`: JMP or Jcc, near or short. 0: there is none. */
static int64_t jump_read(const uint8_t *code, size_t i, size_t n)
{
	const bool is_near = code[i - 1] == 0xe9 || (i > 1 && (code[i - 1] & 0xf0) == 0x80 && code[i - 2] == 0x0f);
	int32_t distance;

	if (code[i - 1] == 0xeb || (code[i - 1] & 0xf0) == 0x70)
		return (int64_t)i + 1 + (int8_t)code[i];
	if (!is_near || n - i < sizeof(distance))
		return 0;
	memcpy(&distance, code + i, sizeof(distance));
	return (int64_t)(i + sizeof(distance)) + distance;
}

/* JMP by a register or memory. */
static bool is_indirect_jump(const uint8_t *code)
{
	return code[0] == 0xff && (code[1] & 0x38) == 0x20;
}

/* Whether a function of `n` bytes may jump there: to where another one begins, or to a part of its own far away. */
static bool is_outside(const struct user_code *code, uint64_t start, int64_t distance, size_t n)
{
	const uint64_t to = start + (uint64_t)distance;
	enum unwind_end end;

	if (distance >= 0 && distance < (int64_t)n)
		return false;
	if (is_entry(code, to))
		return is_begin(code, to);
	return (distance < INT8_MIN || distance > (int64_t)n + INT8_MAX) && unwind_cells_find(code, to, &end);
}

static void jump_add(struct user_jumps *jumps, int64_t distance)
{
	for (unsigned i = 0; i < jumps->n; i++)
		if (jumps->distances[i] == distance)
			return;
	if (jumps->n < USER_TEXT_JUMPS_MAX && distance == (int32_t)distance)
		jumps->distances[jumps->n++] = (int32_t)distance;
	else
		jumps->anywhere = true;
}

/* Any bytes that look like a jump are taken for one. False: its code cannot be read now. */
static bool jumps_find(struct search *search, uint64_t start, struct user_jumps *jumps)
{
	uint8_t code[PIECE_BYTES];
	const size_t n = function_bytes(search, start);

	if (n == 0 || n > search->bytes)
		return false;
	search->bytes -= n;
	jumps->anywhere = n == SCANNED_BYTES;
	/* Pieces overlap, so that each jump is in one of them as a whole. */
	for (size_t at = 0; at < n && !jumps->anywhere; at += PIECE_BYTES - JUMP_BYTES_MAX) {
		const size_t bytes = MIN(n - at, sizeof(code));

		if (!code_read(search, start + at, code, bytes))
			return false;
		for (size_t i = 1; i < bytes && !jumps->anywhere; i++) {
			const int64_t to = (int64_t)at + jump_read(code, i, bytes);

			if (is_indirect_jump(code + i - 1))
				jumps->anywhere = true;
			else if (is_outside(search->config->code, start, to, n))
				jump_add(jumps, to);
		}
	}
	return true;
}

/* Whether jumps of the function that begins at `start` may lead to the one that has `ip`. */
static bool jumps_to(struct search *search, uint64_t start, uint64_t ip, unsigned left)
{
	const struct user_range *range = user_code_find(search->config->code, start);
	struct user_jumps own = {.n = 0}, *jumps = &own;
	bool known = false;

	if (search->config->text && range && range->table)
		jumps = user_text_jumps(search->config->text, range, start, &known);
	if (!known && !jumps_find(search, start, jumps)) {
		jumps->table = NULL;
		return true;
	}
	own = *jumps;
	for (unsigned i = 0; i < own.n; i++) {
		const uint64_t to = start + (uint64_t)(int64_t)own.distances[i];

		if (is_covered(search->config->code, MIN(to, ip), MAX(to, ip)) ||
		    link_to(search, to, ip, left) != LINK_NONE)
			return true;
	}
	return own.anywhere;
}

/* How a call of `target` leads to the function that has `ip`. */
static enum link link_to(struct search *search, uint64_t target, uint64_t ip, unsigned way)
{
	const struct user_code *code = search->config->code;
	const bool inside = is_function(code, target, ip);
	uint8_t called[CALLED_BYTES];
	size_t at;
	uint64_t to;

	if (inside && ip - target < LINKAGE_BYTES)
		return LINK_DIRECT;
	if (search->bytes < CALLED_BYTES || !code_read(search, target, called, CALLED_BYTES))
		return LINK_POSSIBLE;
	search->bytes -= CALLED_BYTES;
	if (is_unbound(called))
		return LINK_POSSIBLE;
	const bool linkage = is_linkage(called, &at);

	/* The information for the linkage table is that of one function. */
	if (inside && !linkage)
		return LINK_DIRECT;
	if (!linkage)
		return way < WAY_OF_JUMP || jumps_to(search, target, ip, way - WAY_OF_JUMP) ? LINK_POSSIBLE : LINK_NONE;
	return way >= WAY_OF_POINTER && pointer_read(search, called + at, target + at + POINTER_JUMP_BYTES, &to)
	               ? link_to(search, to, ip, way - WAY_OF_POINTER)
	               : LINK_POSSIBLE;
}

/* How the call before `return_address` leads to the function that has `ip`. `way`: as long as it may be. */
static enum link link_of(struct search *search, uint64_t return_address, uint64_t ip, unsigned way)
{
	uint8_t code[POINTER_JUMP_BYTES];
	uint64_t target;

	switch (call_read(search, return_address, &target)) {
	case CODE_CALL_DIRECT:
		return link_to(search, target, ip, way);
	case CODE_CALL_INDIRECT:
		if (code_read(search, return_address - sizeof(code), code, sizeof(code)) && code[0] == 0xff &&
		    code[1] == 0x15 && pointer_read(search, code, return_address, &target) &&
		    is_function(search->config->code, target, ip))
			return LINK_DIRECT;
		return LINK_POSSIBLE;
	default:
		return LINK_NONE;
	}
}

/* ---- chains ---- */

static bool is_first(const struct cfi_cell *cells)
{
	for (unsigned i = 1; i < cells[0].count; i++)
		if (cells[i].target == CFI_RETURN)
			return cells[i].how == CFI_UNDEFINED;
	return false;
}

enum verdict { GOES_ON, IS_ROOT, IS_NONE };

static enum verdict trail_step(struct search *search, struct frame *frame, struct trail *trail)
{
	const uint64_t callee = frame->exact ? frame->ip : frame->ip - 1;
	enum unwind_end end;
	const struct cfi_cell *cells = unwind_cells_find(search->config->code, callee, &end);

	if (!cells || search->steps == 0 || trail->n == FRAMES_MAX)
		return IS_NONE;
	search->steps--;
	if (is_first(cells))
		return IS_ROOT;
	if (unwind_user_step(search->config->code, search->memory, frame, &end) == STEP_DONE)
		return IS_NONE;
	trail->ips[trail->n++] = frame->ip;
	/* What was interrupted by a signal has called nothing, and what handles it was called by nothing. */
	if (frame->exact)
		return GOES_ON;
	cells = unwind_cells_find(search->config->code, frame->ip - 1, &end);
	return (cells && cells[0].target == CFI_CFA_SIGNAL) || link_of(search, frame->ip, callee, WAY_MAX) != LINK_NONE
	               ? GOES_ON
	               : IS_NONE;
}

static bool same(const struct trail *trail, const struct trail *other)
{
	return trail->n == other->n && memcmp(trail->ips, other->ips, trail->n * sizeof(trail->ips[0])) == 0;
}

static void candidate_try(struct search *search, uint64_t rsp)
{
	struct trail trail = {.rsp = rsp};
	enum verdict verdict = GOES_ON;
	struct frame frame;

	frame_from_registers(search->regs, &frame);
	frame.sp = frame.registers[CFI_SP] = rsp;
	while (verdict == GOES_ON)
		verdict = trail_step(search, &frame, &trail);
	if (verdict != IS_ROOT)
		return;
	if (!search->has_found)
		search->found = trail;
	else if (!same(&search->found, &trail))
		search->has_others = true;
	search->has_found = true;
}

/* ---- the stack ---- */

/* What is between the stack pointer and the return address at RIP; false: that does not depend on the stack pointer
 * alone. */
static bool distance_find(const struct cfi_cell *cells, uint64_t *distance)
{
	for (unsigned i = 1; i < cells[0].count; i++)
		if (cells[i].target == CFI_RETURN && cells[i].how == CFI_MEMORY && cells[i].base == CFI_CFA &&
		    cells[0].how == CFI_VALUE) {
			*distance = (uint64_t)((int64_t)cells[0].offset + cells[i].offset);
			return true;
		}
	return false;
}

static void page_search(struct search *search, uint64_t page, uint64_t distance)
{
	uint64_t words[WORDS];

	if (!page_walk_read(search->memory, (gva_t){page}, words, sizeof(words)))
		return;
	for (size_t i = 0; i < WORDS && search->steps > 0 && !search->has_others; i++)
		if (user_code_find(search->config->code, words[i] - 1) &&
		    link_of(search, words[i], search->regs->rip, WAY_OF_POINTER) == LINK_DIRECT)
			candidate_try(search, page + i * sizeof(uint64_t) - distance);
}

enum unwind_search_result unwind_search_user(const struct unwind_config *config, const struct unwind_stacks *stacks,
                                             struct page_walk *memory, struct guest_regs *regs)
{
	struct search search = {
		.config = config,
		.memory = memory,
		.regs = regs,
		.steps = UNWIND_SEARCH_STEPS_MAX,
		.bytes = UNWIND_SEARCH_CODE_BYTES_MAX,
	};
	const uint64_t first = (stacks->user & ~(PAGE_BYTES - 1)) - UNWIND_SEARCH_USER_BELOW;
	enum unwind_end end;
	const struct cfi_cell *cells = unwind_cells_find(config->code, regs->rip, &end);
	uint64_t distance = 0;

	if (!cells)
		return UNWIND_SEARCH_NO_TABLE;
	if (cells[0].base != CFI_RSP)
		candidate_try(&search, 0);
	else if (distance_find(cells, &distance))
		for (uint64_t i = 0; i < UNWIND_SEARCH_USER_BYTES; i += PAGE_BYTES)
			page_search(&search, first + i, distance);
	if (search.has_others)
		return UNWIND_SEARCH_AMBIGUOUS;
	if (search.steps == 0 || search.bytes < CALLED_BYTES)
		return UNWIND_SEARCH_WORK;
	if (!search.has_found)
		return UNWIND_SEARCH_NONE;
	regs->rsp = search.found.rsp;
	return UNWIND_SEARCH_FOUND;
}
