// SPDX-License-Identifier: BSD-2-Clause
#include <glib.h>
#include <string.h>

#include "lib/code/code.h"

#define INSTRUCTION_BYTES 4u

static size_t length(const uint8_t *code G_GNUC_UNUSED, size_t n)
{
	return n < INSTRUCTION_BYTES ? 0 : INSTRUCTION_BYTES;
}

/* The distance in instructions that `bits` bits of the code have from bit `shift` on, in bytes. */
static uint64_t distance(uint32_t code, unsigned shift, unsigned bits)
{
	const uint64_t field = code >> shift & ((UINT32_C(1) << bits) - 1), sign = UINT64_C(1) << (bits - 1);

	return ((field ^ sign) - sign) * sizeof(code);
}

/* Arm ARM, C4.1.66: RET, RETAA and RETAB; BR, BRAA and BRAB; B; B.cond, CBZ and CBNZ; TBZ and TBNZ. */
static enum processor_flow flow(const uint8_t *bytes, size_t n G_GNUC_UNUSED, uint64_t at, uint64_t *target)
{
	uint32_t code;

	memcpy(&code, bytes, sizeof(code));
	if ((code & 0xfffffc1fu) == 0xd65f0000u || (code & 0xfffffbffu) == 0xd65f0bffu)
		return FLOW_RETURN;
	if ((code & 0xfefff000u) == 0xd61f0000u)
		return FLOW_JUMP_THROUGH;
	if ((code & 0xfc000000u) == 0x14000000u)
		*target = at + distance(code, 0, 26);
	else if ((code & 0xff000000u) == 0x54000000u || (code & 0x7e000000u) == 0x34000000u)
		*target = at + distance(code, 5, 19);
	else if ((code & 0x7e000000u) == 0x36000000u)
		*target = at + distance(code, 5, 14);
	else
		return FLOW_ON;
	return FLOW_JUMP;
}

static const char *why_no_boundary(const uint8_t *code G_GNUC_UNUSED, size_t n G_GNUC_UNUSED, size_t distance)
{
	return distance % INSTRUCTION_BYTES == 0 ? NULL : "is in the middle of an instruction";
}

/* The two NOPs of -fpatchable-function-entry, behind BTI where there is one (arch/arm64/kernel/ftrace.c). */
static bool ftrace_find(const uint8_t *code, size_t n, uint64_t entry G_GNUC_UNUSED, uint64_t fentry G_GNUC_UNUSED,
                        size_t *at, size_t *bytes)
{
	static const uint8_t bti_c[] = {0x5f, 0x24, 0x03, 0xd5},
			     nops[] = {0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5};

	*at = n >= sizeof(bti_c) && memcmp(code, bti_c, sizeof(bti_c)) == 0 ? sizeof(bti_c) : 0;
	*bytes = sizeof(nops);
	return n >= *at + sizeof(nops) && memcmp(code + *at, nops, sizeof(nops)) == 0;
}

const struct processor_code code_arm64 = {
	.alignment = INSTRUCTION_BYTES,
	.length_max = INSTRUCTION_BYTES,
	.length = length,
	.flow = flow,
	.why_no_boundary = why_no_boundary,
	.ftrace_find = ftrace_find,
};
