// SPDX-License-Identifier: BSD-2-Clause
#include "lib/code/x86/instruction.h"

#include <glib.h>
#include <string.h>

/*
 * What follows an opcode:
 *   .  nothing           M  ModRM               x  there is no such instruction
 *   b  imm8              B  ModRM, imm8         w  imm16            e  imm16, imm8 (ENTER)
 *   z  imm16 or imm32    Z  ModRM, imm16/32     v  an immediate of the operand's size (MOV)
 *   j  rel32             o  an address (MOV)    f  ModRM, imm8 if TEST    F  ModRM, imm16/32 if TEST
 *   p  a prefix          r  a REX prefix        2  the two-byte map  3  VEX, 3 bytes  5  VEX, 2 bytes  E  EVEX
 *   X  POP, or XOP
 */
static const char one_byte[] = "MMMMbzxxMMMMbzx2"  /* 00 */
			       "MMMMbzxxMMMMbzxx"  /* 10 */
			       "MMMMbzpxMMMMbzpx"  /* 20 */
			       "MMMMbzpxMMMMbzpx"  /* 30 */
			       "rrrrrrrrrrrrrrrr"  /* 40 */
			       "................"  /* 50 */
			       "xxEMppppzZbB...."  /* 60 */
			       "bbbbbbbbbbbbbbbb"  /* 70 */
			       "BZxBMMMMMMMMMMMX"  /* 80 */
			       "..........x....."  /* 90 */
			       "oooo....bz......"  /* a0 */
			       "bbbbbbbbvvvvvvvv"  /* b0 */
			       "BBw.35BZe.w..bx."  /* c0 */
			       "MMMMxxx.MMMMMMMM"  /* d0 */
			       "bbbbbbbbjjxb...."  /* e0 */
			       "p.pp..fF......MM"; /* f0 */

/* Behind 0f. 2: all of 0f 38 have ModRM; 3: all of 0f 3a have ModRM and imm8. */
static const char two_bytes[] = "MMMMx.....x.xM.B"  /* 00 */
				"MMMMMMMMMMMMMMMM"  /* 10 */
				"MMMMxxxxMMMMMMMM"  /* 20 */
				"......x.2x3xxxxx"  /* 30 */
				"MMMMMMMMMMMMMMMM"  /* 40 */
				"MMMMMMMMMMMMMMMM"  /* 50 */
				"MMMMMMMMMMMMMMMM"  /* 60 */
				"BBBBMMM.MMxxMMMM"  /* 70 */
				"jjjjjjjjjjjjjjjj"  /* 80 */
				"MMMMMMMMMMMMMMMM"  /* 90 */
				"...MBMxx...MBMMM"  /* a0 */
				"MMMMMMMMMMBMMMMM"  /* b0 */
				"MMBMBBBM........"  /* c0 */
				"MMMMMMMMMMMMMMMM"  /* d0 */
				"MMMMMMMMMMMMMMMM"  /* e0 */
				"MMMMMMMMMMMMMMMM"; /* f0 */

#define PREFIX_OPERAND_SIZE 0x66u
#define PREFIX_ADDRESS_SIZE 0x67u
#define REX_W 0x08u
#define VEX_MAP_0F 1u
#define VEX_MAP_0F38 2u
#define VEX_MAP_0F3A 3u
#define VEX_MAPS 8u
#define XOP_MAP_8 8u
#define XOP_MAP_9 9u
#define XOP_MAP_A 10u

/* The bytes, and what the prefixes say. A byte behind the end is 0, and the length is too long then. */
struct decoder {
	const uint8_t *bytes;
	size_t n, at;
	bool operand_size, address_size, wide;
};

static uint8_t peek(const struct decoder *decoder, size_t distance)
{
	return decoder->at + distance < decoder->n ? decoder->bytes[decoder->at + distance] : 0;
}

static uint8_t next(struct decoder *decoder)
{
	uint8_t byte = peek(decoder, 0);

	decoder->at++;
	return byte;
}

/* ModRM, SIB and displacement (SDM Vol. 2, tables 2-2 and 2-3). */
static void skip_modrm(struct decoder *decoder)
{
	uint8_t modrm = next(decoder), mod = modrm >> 6, rm = modrm & 7, base = rm;

	if (mod == 3)
		return;
	if (rm == 4)
		base = next(decoder) & 7;
	if (mod == 1)
		decoder->at += 1;
	else if (mod == 2 || base == 5)
		decoder->at += 4;
}

static unsigned immediate_bytes(const struct decoder *decoder)
{
	return decoder->operand_size && !decoder->wide ? 2 : 4;
}

/* What follows the opcodes of a kind: how many bytes, and these. */
#define OPERANDS_BYTES 0x07u
#define OPERANDS_OTHER 0x08u /* as many as operand_bytes says */
#define OPERANDS_SIZED 0x10u /* imm16 or imm32 */
#define OPERANDS_TEST 0x20u  /* its immediate only in groups 3, for TEST: the first two of f6 and f7 */
#define OPERANDS_MODRM 0x40u
#define OPERANDS_EXIST 0x80u

static const uint8_t operands[128] = {
	['.'] = OPERANDS_EXIST,
	['M'] = OPERANDS_EXIST | OPERANDS_MODRM,
	['b'] = OPERANDS_EXIST | 1,
	['B'] = OPERANDS_EXIST | OPERANDS_MODRM | 1,
	['w'] = OPERANDS_EXIST | 2,
	['e'] = OPERANDS_EXIST | 3,
	['j'] = OPERANDS_EXIST | 4, /* with the prefix, too: processors differ there, and compilers write 32 bits */
	['z'] = OPERANDS_EXIST | OPERANDS_SIZED,
	['Z'] = OPERANDS_EXIST | OPERANDS_MODRM | OPERANDS_SIZED,
	['v'] = OPERANDS_EXIST | OPERANDS_OTHER,
	['o'] = OPERANDS_EXIST | OPERANDS_OTHER,
	['f'] = OPERANDS_EXIST | OPERANDS_MODRM | OPERANDS_TEST | 1,
	['F'] = OPERANDS_EXIST | OPERANDS_MODRM | OPERANDS_TEST | OPERANDS_SIZED,
};

/* Of MOV with an immediate or an address. */
static unsigned operand_bytes(const struct decoder *decoder, char kind)
{
	if (kind == 'o')
		return decoder->address_size ? 4 : 8;
	return decoder->wide ? 8 : immediate_bytes(decoder);
}

/* False: there is no such instruction. */
static bool skip_operands(struct decoder *decoder, char kind)
{
	unsigned what = operands[(unsigned char)kind];

	if ((what & OPERANDS_TEST) && (peek(decoder, 0) >> 3 & 7) > 1)
		what &= ~(OPERANDS_BYTES | OPERANDS_SIZED);
	if (what & OPERANDS_MODRM)
		skip_modrm(decoder);
	decoder->at += what & OPERANDS_BYTES;
	if (what & OPERANDS_SIZED)
		decoder->at += immediate_bytes(decoder);
	if (what & OPERANDS_OTHER)
		decoder->at += operand_bytes(decoder, kind);
	return what & OPERANDS_EXIST;
}

static bool skip_two_bytes(struct decoder *decoder)
{
	char kind = two_bytes[next(decoder)];

	if (kind != '2' && kind != '3')
		return skip_operands(decoder, kind);
	decoder->at++;
	return skip_operands(decoder, kind == '2' ? 'M' : 'B');
}

/* The maps behind VEX and EVEX differ from the others in what has no ModRM (VZEROUPPER), and two that only EVEX has. */
static bool skip_vector(struct decoder *decoder, unsigned map, bool evex)
{
	uint8_t opcode = next(decoder);

	switch (map) {
	case VEX_MAP_0F:
		return skip_operands(decoder, two_bytes[opcode]);
	case VEX_MAP_0F38:
		return skip_operands(decoder, 'M');
	case VEX_MAP_0F3A:
		return skip_operands(decoder, 'B');
	case 5: /* AVX512-FP16; with the opcodes of 0f and 0f 38 */
	case 6:
		return evex && skip_operands(decoder, 'M');
	default:
		return false;
	}
}

static bool skip_vex(struct decoder *decoder, char kind)
{
	unsigned map = VEX_MAP_0F;

	if (kind == '5') {
		decoder->at += 1;
	} else {
		map = peek(decoder, 0) & (kind == 'E' ? VEX_MAPS - 1 : 0x1f);
		decoder->at += kind == 'E' ? 3 : 2;
	}
	return skip_vector(decoder, map, kind == 'E');
}

/* 8f: POP has 0 in ModRM's reg; what would be another instruction of that group is AMD's XOP prefix. */
static bool skip_pop_or_xop(struct decoder *decoder)
{
	unsigned map = peek(decoder, 0) & 0x1f;

	if (map < XOP_MAP_8)
		return (peek(decoder, 0) >> 3 & 7) == 0 && skip_operands(decoder, 'M');
	decoder->at += 3;
	if (map == XOP_MAP_A)
		decoder->operand_size = decoder->wide = false;
	return map <= XOP_MAP_A && skip_operands(decoder, map == XOP_MAP_8 ? 'B' : map == XOP_MAP_9 ? 'M' : 'Z');
}

size_t instruction_opcode(const uint8_t *bytes, size_t n)
{
	size_t at = 0;

	while (at + 1 < n && (one_byte[bytes[at]] == 'p' || one_byte[bytes[at]] == 'r'))
		at++;
	return at;
}

/* Returns the opcode's kind; REX counts only directly before the opcode. */
static char skip_prefixes(struct decoder *decoder)
{
	size_t opcode = instruction_opcode(decoder->bytes, MIN(decoder->n, INSTRUCTION_LENGTH_MAX));

	while (decoder->at < opcode) {
		uint8_t prefix = next(decoder);

		decoder->operand_size |= prefix == PREFIX_OPERAND_SIZE;
		decoder->address_size |= prefix == PREFIX_ADDRESS_SIZE;
		decoder->wide = one_byte[prefix] == 'r' && (prefix & REX_W);
	}
	return one_byte[next(decoder)];
}

size_t instruction_length(const uint8_t *bytes, size_t n)
{
	struct decoder decoder = {.bytes = bytes, .n = n};
	char kind = skip_prefixes(&decoder);
	bool found;

	switch (kind) {
	case '2':
		found = skip_two_bytes(&decoder);
		break;
	case '3':
	case '5':
	case 'E':
		found = skip_vex(&decoder, kind);
		break;
	case 'X':
		found = skip_pop_or_xop(&decoder);
		break;
	default:
		found = skip_operands(&decoder, kind);
		break;
	}
	return found && decoder.at <= n && decoder.at <= INSTRUCTION_LENGTH_MAX ? decoder.at : 0;
}

bool instruction_may_end(const uint8_t *bytes, size_t n)
{
	const size_t at = instruction_opcode(bytes, n);
	const uint8_t next = at + 1 < n ? bytes[at + 1] : 0;

	switch (at < n ? bytes[at] : 0) {
	case 0xc2: /* RET */
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcc: /* INT3 */
	case 0xcf: /* IRET */
	case 0xe8: /* CALL */
	case 0xe9: /* JMP */
	case 0xeb:
	case 0xf4: /* HLT */
		return true;
	case 0x0f: /* UD2, UD1, SYSRET, SYSEXIT */
		return next == 0x0b || next == 0xb9 || next == 0x07 || next == 0x35;
	case 0xff: /* CALL, JMP */
		return (next >> 3 & 7) >= 2 && (next >> 3 & 7) <= 5;
	default:
		return false;
	}
}

/* SDM Vol. 2: JMP (E9, EB), Jcc (70 to 7F, 0F 80 to 8F), LOOP and JRCXZ (E0 to E3). */
bool instruction_jump(const uint8_t *bytes, size_t n, uint64_t address, uint64_t *target, bool *always)
{
	const size_t at = instruction_opcode(bytes, n);
	const uint8_t byte = at < n ? bytes[at] : 0, next = at + 1 < n ? bytes[at + 1] : 0;
	const bool is_short = byte == 0xeb || (byte & 0xf0) == 0x70 || (byte & 0xfc) == 0xe0;
	int32_t distance;

	if (!is_short && byte != 0xe9 && !(byte == 0x0f && (next & 0xf0) == 0x80))
		return false;
	if (n < sizeof(distance) && !is_short)
		return false;
	if (is_short)
		distance = (int8_t)bytes[n - 1];
	else
		memcpy(&distance, bytes + n - sizeof(distance), sizeof(distance));
	*target = address + n + (uint64_t)(int64_t)distance;
	*always = byte == 0xe9 || byte == 0xeb;
	return true;
}

bool instruction_is_jump_through(const uint8_t *bytes, size_t n)
{
	const size_t at = instruction_opcode(bytes, n);

	return at + 1 < n && bytes[at] == 0xff && (bytes[at + 1] >> 3 & 7) >= 4 && (bytes[at + 1] >> 3 & 7) <= 5;
}

bool instruction_is_nop(const uint8_t *bytes, size_t n)
{
	const size_t at = instruction_opcode(bytes, n);

	return at < n && (bytes[at] == 0x90 || (bytes[at] == 0x0f && at + 1 < n && bytes[at + 1] == 0x1f));
}
