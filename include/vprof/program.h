// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a probe does where it hits, instead of recording an event: a program, which vprof compiles from a script and the
 * engine checks and runs on the vCPU's thread.
 *
 * It works on a frame of 64-bit words, which starts as zeros. An instruction names words by their number, or the first
 * of several: a text has VPROF_PROGRAM_TEXT_WORDS of them, with zeros behind its end, and a stack
 * VPROF_PROGRAM_STACK_WORDS, of which the first is the process that it is of (0: the kernel's) and the others are
 * return addresses, up to a 0. Jumps lead forward only, so that a program ends after at most as many instructions as it
 * has.
 *
 * Maps belong to a client's probes. A key is a fixed number of words. Programs send words to the client as events
 * (vprof/probe.h) with the number of the action first.
 */
#ifndef VPROF_PROGRAM_H
#define VPROF_PROGRAM_H

#include <stdint.h>

#define VPROF_PROGRAM_INSTRUCTIONS_MAX 1024u
#define VPROF_PROGRAM_FRAME_WORDS 1024u
#define VPROF_PROGRAM_TEXT_WORDS 8u
#define VPROF_PROGRAM_TEXT_BYTES (VPROF_PROGRAM_TEXT_WORDS * sizeof(uint64_t))
#define VPROF_PROGRAM_STACK_WORDS 65u
#define VPROF_PROGRAM_SENT_WORDS 256u /* by one instruction, beside the number of the action */
#define VPROF_PROGRAM_ACTION_MAX INT32_MAX

#define VPROF_MAPS_MAX 32u           /* of one client */
#define VPROF_MAP_KEY_WORDS_MAX 192u /* of a key */
#define VPROF_MAP_ENTRIES_MAX 65536u /* of a map with keys */
#define VPROF_MAP_ENTRIES_DEFAULT 4096u
#define VPROF_MAP_RANGES_MAX 1000u                /* of a lhist, beside what is below and above them */
#define VPROF_MAP_BYTES_MAX (UINT64_C(256) << 20) /* of a client's maps; memory that is not used is not taken */
#define VPROF_MAP_POWERS 66u                      /* of a hist: below 0, 0, 1, 2 to 3, 4 to 7, ... */

/*
 * What a map keeps for a key, and the words of it. min and max: a number; avg and stats: how many, and their sum;
 * lhist: how many are below the ranges, in each, and above.
 */
#define VPROF_MAP_KINDS(X)                        \
	X(NUMBER, "number", 1)                    \
	X(TEXT, "text", VPROF_PROGRAM_TEXT_WORDS) \
	X(COUNT, "count", 1)                      \
	X(SUM, "sum", 1)                          \
	X(MIN, "min", 1)                          \
	X(MAX, "max", 1)                          \
	X(AVG, "avg", 2)                          \
	X(STATS, "stats", 2)                      \
	X(HIST, "hist", VPROF_MAP_POWERS)         \
	X(LHIST, "lhist", 0)

#define X(id, name, words) VPROF_MAP_##id,
enum vprof_map_kind { VPROF_MAP_KINDS(X) VPROF_MAP_KIND_COUNT };
#undef X

/*
 * What an operand is: a number of one word, a text, a stack, a map's key or value, words to send, or none, which is 0.
 * `constant`: any number, where a jump leads (the number of an instruction, or behind the last), an argument, or
 * one of the registers behind them, or a field of the probe (vprof/probe.h) by its number, one of vprof_program_number,
 * the most frames of a stack, bytes to read at an address (1, 2, 4, 8; negative: signed), bytes of a text that count,
 * or the number of an action.
 */
#define VPROF_PROGRAM_OPERATIONS(X)                                                                      \
	X(CONSTANT, NUMBER, NONE, NONE, ANY)                                                             \
	X(COPY, NUMBER, NUMBER, NONE, NONE)                                                              \
	X(COPY_TEXT, TEXT, TEXT, NONE, NONE)                                                             \
	X(NEGATE, NUMBER, NUMBER, NONE, NONE)                                                            \
	X(NOT, NUMBER, NUMBER, NONE, NONE)                                                               \
	X(COMPLEMENT, NUMBER, NUMBER, NONE, NONE)                                                        \
	X(ADD, NUMBER, NUMBER, NUMBER, NONE)                                                             \
	X(SUBTRACT, NUMBER, NUMBER, NUMBER, NONE)                                                        \
	X(MULTIPLY, NUMBER, NUMBER, NUMBER, NONE)                                                        \
	X(DIVIDE, NUMBER, NUMBER, NUMBER, NONE)                                                          \
	X(DIVIDE_UNSIGNED, NUMBER, NUMBER, NUMBER, NONE)                                                 \
	X(MODULO, NUMBER, NUMBER, NUMBER, NONE)                                                          \
	X(MODULO_UNSIGNED, NUMBER, NUMBER, NUMBER, NONE)                                                 \
	X(AND, NUMBER, NUMBER, NUMBER, NONE)                                                             \
	X(OR, NUMBER, NUMBER, NUMBER, NONE)                                                              \
	X(XOR, NUMBER, NUMBER, NUMBER, NONE)                                                             \
	X(SHIFT_LEFT, NUMBER, NUMBER, NUMBER, NONE)                                                      \
	X(SHIFT_RIGHT, NUMBER, NUMBER, NUMBER, NONE)                                                     \
	X(SHIFT_RIGHT_UNSIGNED, NUMBER, NUMBER, NUMBER, NONE)                                            \
	X(EQUAL, NUMBER, NUMBER, NUMBER, NONE)                                                           \
	X(LESS, NUMBER, NUMBER, NUMBER, NONE)                                                            \
	X(LESS_UNSIGNED, NUMBER, NUMBER, NUMBER, NONE)                                                   \
	X(DIFFERS, NUMBER, TEXT, TEXT, TEXT_BYTES) /* 0: the first bytes are the same, or all of both */ \
	X(JUMP, NONE, NONE, NONE, TARGET)                                                                \
	X(JUMP_IF_ZERO, NONE, NUMBER, NONE, TARGET)                                                      \
	X(BUILTIN, NUMBER, NONE, NONE, BUILTIN)                                                          \
	X(COMM, TEXT, NONE, NONE, NONE)                                                                  \
	X(KERNEL_STACK, STACK, NONE, NONE, FRAMES)                                                       \
	X(USER_STACK, STACK, NONE, NONE, FRAMES)                                                         \
	X(ARGUMENT, NUMBER, NONE, NONE, ARGUMENT)                                                        \
	X(FIELD, NUMBER, NONE, NONE, FIELD)                                                              \
	X(FIELD_TEXT, TEXT, NONE, NONE, FIELD_TEXT)                                                      \
	X(READ, NUMBER, NUMBER, NONE, BYTES)                                                             \
	X(READ_TEXT, TEXT, NUMBER, NONE, TEXT_BYTES)                                                     \
	X(MAP_GET, VALUE, KEY, NONE, NONE) /* zeros without such a key */                                \
	X(MAP_SET, NONE, KEY, VALUE, NONE)                                                               \
	X(MAP_ADD, NONE, KEY, NUMBER, NONE) /* as the kind of the map has it; to a number: the sum */    \
	X(MAP_DELETE, NONE, KEY, NONE, NONE)                                                             \
	X(SEND, NONE, SENT, ANY, ACTION)  /* words from `a` on, as many as `b` says */                   \
	X(EXIT, NONE, NONE, NONE, ACTION) /* sends that, and no program of the client runs any more */   \
	X(EVENT, NONE, NONE, NONE, NONE)  /* records the event that the probe would without a program */

#define X(id, dst, a, b, constant) VPROF_PROGRAM_##id,
enum vprof_program_operation { VPROF_PROGRAM_OPERATIONS(X) VPROF_PROGRAM_OPERATION_COUNT };
#undef X

/*
 * Process and thread (-1: not known), vCPU, CLOCK_MONOTONIC of the host, address of the instruction, task_struct, inode
 * number of the cgroup's folder (0: not known), the process again, with what is mapped in it in the ring, and how many
 * of the values that the program has asked for so far could not be read, or are arguments that are not known.
 */
enum vprof_program_number {
	VPROF_PROGRAM_PID,
	VPROF_PROGRAM_TID,
	VPROF_PROGRAM_CPU,
	VPROF_PROGRAM_NSECS,
	VPROF_PROGRAM_IP,
	VPROF_PROGRAM_CURTASK,
	VPROF_PROGRAM_CGROUP,
	VPROF_PROGRAM_MAPPED_PID,
	VPROF_PROGRAM_FAULTS,
	VPROF_PROGRAM_NUMBER_COUNT
};

/* In the order of x86-64's bytes. The control protocol has a program as two hexadecimal digits for each byte. */
struct vprof_instruction {
	uint8_t operation;
	uint8_t map;
	uint16_t dst, a, b;
	int64_t constant;
};
_Static_assert(sizeof(struct vprof_instruction) == 16, "as it is sent");

#endif
