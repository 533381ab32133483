// SPDX-License-Identifier: BSD-2-Clause
/* What is known of the instructions of a processor, in a table for each. */
#ifndef VPROF_CODE_CODE_H
#define VPROF_CODE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/arch.h"

/* What an instruction does, as far as a search for a function's ends has to know. */
enum processor_flow { FLOW_ON, FLOW_RETURN, FLOW_JUMP, FLOW_JUMP_THROUGH };

struct processor_code {
	unsigned alignment; /* of instructions; 1: they have any length */
	unsigned length_max;
	/* Of the instruction at the begin of `n` bytes; 0: there is none. */
	size_t (*length)(const uint8_t *code, size_t n);
	/* Of an instruction of `n` bytes at `at`. *target: where FLOW_JUMP may lead. */
	enum processor_flow (*flow)(const uint8_t *code, size_t n, uint64_t at, uint64_t *target);
	/* Why no instruction begins `distance` bytes into `n` bytes of code; NULL: one does. */
	const char *(*why_no_boundary)(const uint8_t *code, size_t n, size_t distance);
	/*
	 * The instructions for ftrace at a function's begin, `entry`, with these `n` bytes: their distance and how many
	 * bytes they have. `fentry`: the address of __fentry__; 0: there is none. False: it has none.
	 */
	bool (*ftrace_find)(const uint8_t *code, size_t n, uint64_t entry, uint64_t fentry, size_t *at, size_t *bytes);
};

/* Of an architecture that is known. */
const struct processor_code *code_of(enum arch arch);

extern const struct processor_code code_x86, code_arm64;

#endif
