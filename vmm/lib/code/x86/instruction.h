// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the opcode of an instruction of 64-bit code is, and where the instruction ends (SDM Vol. 2, 2.1 to 2.7, and the
 * opcode maps of Vol. 2D, appendix A).
 */
#ifndef VPROF_CODE_X86_INSTRUCTION_H
#define VPROF_CODE_X86_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SDM Vol. 2, 2.3.11 */
#define INSTRUCTION_LENGTH_MAX 15u

/* How many of the `n` bytes it has, 1..INSTRUCTION_LENGTH_MAX; 0: it is none, or longer than `n`. */
size_t instruction_length(const uint8_t *bytes, size_t n);

/* The distance of its opcode, behind the prefixes of SDM Vol. 2, 2.1.1, and REX; at most n - 1, and 0 if `n` is 0. */
size_t instruction_opcode(const uint8_t *bytes, size_t n);

/* Whether what is behind this instruction of `n` bytes may never run: RET, JMP, CALL, UD1, UD2, HLT, INT3, SYSRET. */
bool instruction_may_end(const uint8_t *bytes, size_t n);

/*
 * Where a direct jump of `n` bytes at `address` leads: JMP, Jcc, LOOP, JRCXZ. *always: not on a condition. False for
 * any other instruction, with both unchanged.
 */
bool instruction_jump(const uint8_t *bytes, size_t n, uint64_t address, uint64_t *target, bool *always);

/* Whether it is a jump to an address in a register or in memory. */
bool instruction_is_jump_through(const uint8_t *bytes, size_t n);

/* Whether it does nothing: NOP, in any of its lengths. */
bool instruction_is_nop(const uint8_t *bytes, size_t n);

#endif
