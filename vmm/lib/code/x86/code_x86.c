// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "lib/code/code.h"
#include "lib/code/x86/instruction.h"

#define INT3 0xccu
#define FTRACE_BYTES 5u
#define ENDBR64_BYTES 4u

static enum processor_flow flow(const uint8_t *code, size_t n, uint64_t at, uint64_t *target)
{
	const uint8_t byte = code[instruction_opcode(code, n)];
	bool always;

	if (byte == 0xc2 || byte == 0xc3)
		return FLOW_RETURN;
	if (instruction_is_jump_through(code, n))
		return FLOW_JUMP_THROUGH;
	return instruction_jump(code, n, at, target, &always) ? FLOW_JUMP : FLOW_ON;
}

/* INT3 is the guest's own code where the processor must not go on, as compilers put it there. Elsewhere it stands for a
 * byte that a kprobe has replaced. */
static const char *why_no_boundary(const uint8_t *code, size_t n, size_t distance)
{
	size_t at = 0, length = 0;

	for (; at < distance; at += length) {
		if (code[at] == INT3 && (at == 0 || !instruction_may_end(code + at - length, length)))
			return "is behind an INT3 of the guest's own, perhaps a kprobe's: where instructions begin is not known";
		length = instruction_length(code + at, n - at);
		if (length == 0)
			return "is behind bytes that are no instruction";
	}
	return at == distance ? NULL : "is in the middle of an instruction";
}

/* The nop of arch/x86/include/asm/nops.h, or the call of __fentry__ that the kernel makes one at its start. */
static bool is_ftrace_call(const uint8_t bytes[FTRACE_BYTES], uint64_t address, uint64_t fentry)
{
	static const uint8_t nop[FTRACE_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	int32_t distance;

	if (memcmp(bytes, nop, sizeof(nop)) == 0)
		return true;
	memcpy(&distance, bytes + 1, sizeof(distance));
	return bytes[0] == 0xe8 && fentry != 0 && address + FTRACE_BYTES + (uint64_t)(int64_t)distance == fentry;
}

static bool ftrace_find(const uint8_t *code, size_t n, uint64_t entry, uint64_t fentry, size_t *at, size_t *bytes)
{
	static const uint8_t endbr64[ENDBR64_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};

	*at = n >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0;
	*bytes = FTRACE_BYTES;
	return n >= *at + FTRACE_BYTES && is_ftrace_call(code + *at, entry + *at, fentry);
}

const struct processor_code code_x86 = {
	.alignment = 1,
	.length_max = INSTRUCTION_LENGTH_MAX,
	.length = instruction_length,
	.flow = flow,
	.why_no_boundary = why_no_boundary,
	.ftrace_find = ftrace_find,
};
