// SPDX-License-Identifier: BSD-2-Clause
/*
 * The frame-pointer chain of the System V ABI (x86-64 psABI, 3.2.2): rbp points at the caller's rbp, with the return
 * address above it. A function has no frame when it was interrupted before it made it or after it gave it
 * up, or when it uses no stack; the code of the function tells.
 */
#include <string.h>

#include "guest/x86/frame_x86.h"

/* Code from the start of a function to the interrupted instruction; the copy functions of the kernel have 600 bytes. */
#define CODE_BYTES 1024u
#define BEGIN_BYTES 8u  /* of a function that makes a frame */
#define START_BYTES 64u /* of one that threads begin in, up to its call */
#define CALL_BYTES 5u
#define PAGE_BYTES 4096u

static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5}; /* push %rbp; mov %rsp,%rbp */

/*
 * PUSH %RBP; MOV %RSP,%RBP, maybe behind ENDBR64, and RET: where a function has not made its frame yet or has given it
 * up. True: the return address is at *at, and rbp is the caller's.
 */
static bool has_no_frame(struct page_walk *memory, const struct frame *frame, uint64_t *at)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t bytes[1 + sizeof(endbr) + sizeof(prologue)];
	const uint8_t *code = bytes + 1;

	if (!page_walk_read(memory, (gva_t){frame->ip - 1}, bytes, sizeof(bytes)))
		return false;
	*at = frame->sp;
	if (code[0] == 0xc3 || memcmp(code, prologue, sizeof(prologue)) == 0)
		return true;
	if (memcmp(code, endbr, sizeof(endbr)) == 0)
		return memcmp(code + sizeof(endbr), prologue, sizeof(prologue)) == 0;
	*at += sizeof(uint64_t);
	return memcmp(bytes, prologue, sizeof(prologue)) == 0;
}

/* The start of the function that a CALL rel32 just before `after` calls; false when there is no such call. */
static bool call_target(struct page_walk *memory, uint64_t after, uint64_t *target)
{
	uint8_t call[CALL_BYTES];
	int32_t offset;

	if (!page_walk_read(memory, (gva_t){after - sizeof(call)}, call, sizeof(call)) || call[0] != 0xe8)
		return false;
	memcpy(&offset, call + 1, sizeof(offset));
	*target = after + (uint64_t)(int64_t)offset;
	return true;
}

/*
 * Kernel code without a frame uses no stack either (GCC omits the frame only of such functions, and assembly like
 * memcpy has none): rsp points at the return address. It is trusted if it follows a call of a function that begins a
 * little before the instruction, and no frame is made from there on. A stale return address on the stack of a function
 * with a frame does not follow a call of that function.
 */
static bool has_never_a_frame(struct page_walk *memory, const struct frame *frame, uint64_t *at)
{
	uint8_t code[CODE_BYTES];
	uint64_t ip, start;

	if (frame->user || !page_walk_read(memory, (gva_t){frame->sp}, &ip, sizeof(ip)) ||
	    ip - frame->ip + INT32_MAX > UINT64_C(2) * INT32_MAX || !call_target(memory, ip, &start) ||
	    frame->ip - start >= sizeof(code))
		return false;
	size_t n = frame->ip - start;

	*at = frame->sp;
	return page_walk_read(memory, (gva_t){start}, code, n) && !memmem(code, n, prologue, sizeof(prologue));
}

/* False when the function has a frame, as nearly always. */
static bool step_without_frame(struct page_walk *memory, struct frame *frame)
{
	uint64_t at, ip;

	if (!frame->exact || (!has_no_frame(memory, frame, &at) && !has_never_a_frame(memory, frame, &at)) ||
	    !page_walk_read(memory, (gva_t){at}, &ip, sizeof(ip)) || ip == 0)
		return false;
	frame_return(frame, ip, at + sizeof(ip), frame->bp);
	return true;
}

/*
 * XOR %EBP,%EBP, with or without REX, a little before its call: _start and clone do that (x86-64 psABI, 3.4.1). Before
 * them, the kernel does: the dynamic linker begins with MOV %RSP,%RDI and a call.
 */
static bool has_cleared(const uint8_t *code, size_t n)
{
	static const uint8_t clear[] = {0x31, 0xed}, first[] = {0x48, 0x89, 0xe7, 0xe8};
	const size_t near = MIN(n, START_BYTES);

	return memmem(code + n - near, near, clear, sizeof(clear)) ||
	       (n >= CALL_BYTES + 3 && memcmp(code + n - CALL_BYTES - 3, first, sizeof(first)) == 0);
}

/*
 * Whether a frame pointer of 0 says that a function in user space has no caller. Most programs have no frame pointers,
 * and 0 is a number like any other: the function itself makes a frame, or it is one that threads begin in.
 */
static bool is_first(struct page_walk *memory, const struct frame *frame)
{
	uint8_t code[CODE_BYTES + BEGIN_BYTES];
	size_t n = CODE_BYTES;

	if (!page_walk_read_code(memory, (gva_t){frame->ip - n}, code, n + BEGIN_BYTES)) {
		n = frame->ip % PAGE_BYTES < n ? frame->ip % PAGE_BYTES : n;
		if (!page_walk_read_code(memory, (gva_t){frame->ip - n}, code, n + BEGIN_BYTES))
			return false;
	}
	return memmem(code, n + BEGIN_BYTES, prologue, sizeof(prologue)) || (!frame->exact && has_cleared(code, n));
}

static enum step step_end(struct page_walk *memory, const struct frame *frame, enum unwind_end *end)
{
	return step_done(end, !frame->user || is_first(memory, frame) ? UNWIND_END_OF_STACK : UNWIND_BAD_FRAME);
}

enum step unwind_frame_pointer_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                                    enum unwind_end *end)
{
	struct {
		uint64_t bp, ip;
	} saved;
	enum step step;

	if (step_without_frame(memory, frame))
		return STEP_MORE;
	if (frame->bp == 0)
		return step_end(memory, frame, end);
	if (!frame->user && config && config->system && config->system->entered(config, memory, frame, &step, end))
		return step;
	if (frame->bp % sizeof(uint64_t) != 0)
		return step_done(end, UNWIND_BAD_FRAME);
	if (!page_walk_read(memory, (gva_t){frame->bp}, &saved, sizeof(saved)))
		return step_done(end, UNWIND_UNREADABLE);
	if (saved.ip == 0)
		return step_end(memory, frame, end);
	/*
	 * The frame of a caller is further up, except where the kernel changes stacks; user space does not change them.
	 */
	if (saved.bp == frame->bp || (frame->user && saved.bp != 0 && saved.bp < frame->bp))
		return step_done(end, UNWIND_BAD_FRAME);
	if (frame->user && !frame_is_mapped(memory, saved.ip))
		return step_done(end, UNWIND_BAD_FRAME);
	frame_return(frame, saved.ip, frame->bp + sizeof(saved), saved.bp);
	return STEP_MORE;
}
