// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a function returns: its return instructions, and the jumps to the thunks that stand for one. A function may
 * also end by a jump to another one (a tail call), or be continued in a part of its own (NAME.cold): these are
 * followed, since the function that they lead to returns with the same stack pointer.
 */
#ifndef VPROF_CODE_FUNCTION_RETURNS_H
#define VPROF_CODE_FUNCTION_RETURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/code/code.h"
#include "lib/symbol/symtab.h"

#define FUNCTION_RETURNS_MAX 16u

struct function_returns {
	size_t n;
	uint64_t at[FUNCTION_RETURNS_MAX]; /* each is the first byte of an instruction */
};

/* What is known of the guest's code. */
struct function_code {
	/* The symbol that has this address, with its size; NULL: none is known. It lives as long as it is looked for.
	 */
	const struct symbol *(*find)(void *data, uint64_t address);
	/* Copies `n` bytes of the code, as the guest has them now; false when they cannot be read. */
	bool (*read)(void *data, uint64_t from, uint8_t *code, size_t n);
	void *data;
};

/*
 * Of the function that begins at `address`. NULL, or why they are not known: words that follow "the function". New
 * string.
 */
char *function_returns_find(const struct processor_code *of, uint64_t address, const struct function_code *code,
                            struct function_returns *returns);

#endif
