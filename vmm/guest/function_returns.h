// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a function of the kernel returns: its return instructions, and the jumps to the thunks that stand for one. A
 * function may also end by a jump to another one (a tail call), or be continued in a part of its own (NAME.cold): these
 * are followed, since the function that they lead to returns with the same stack pointer.
 */
#ifndef VPROF_GUEST_FUNCTION_RETURNS_H
#define VPROF_GUEST_FUNCTION_RETURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"
#include "lib/symbol/symtab.h"

#define FUNCTION_RETURNS_MAX 16u

struct function_returns {
	size_t n;
	uint64_t at[FUNCTION_RETURNS_MAX]; /* each is the first byte of an instruction */
};

/* Copies `n` bytes of the guest's code, as the guest has them now; false when they cannot be read. */
typedef bool code_read_fn(void *data, uint64_t from, uint8_t *code, size_t n);

/*
 * Of the function that begins at `address`. NULL, or why they are not known: words that follow "the function". New
 * string.
 */
char *function_returns_find(enum guest_processor processor, const struct symtab *symtab, uint64_t address,
                            code_read_fn *read, void *data, struct function_returns *returns);

#endif
