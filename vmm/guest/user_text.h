// SPDX-License-Identifier: BSD-2-Clause
/*
 * The code of programs, for a search that reads it again and again: the pages of files that were read last. Files do
 * not change while they are executed; what a process has changed in a copy of its own may not be seen.
 */
#ifndef VPROF_GUEST_USER_TEXT_H
#define VPROF_GUEST_USER_TEXT_H

#include "guest/page_walk.h"
#include "guest/user_code.h"

struct user_text;

#define USER_TEXT_JUMPS_MAX 64u
/* Where a function jumps to, outside of it. */
struct user_jumps {
	const struct cfi_table *table; /* of its file; NULL: of none */
	uint64_t offset;               /* of its first byte there */
	bool anywhere;                 /* also by registers, or to more places than are kept, or it is too long */
	unsigned n;
	int32_t distances[USER_TEXT_JUMPS_MAX]; /* from its first byte */
};

/* 1.1 MiB. Used by one thread at a time. */
struct user_text *user_text_new(void);
void user_text_free(struct user_text *text);

/*
 * Copies `bytes` of code of the process with `code`; false, with `to` undefined, when any of it is outside of code or
 * cannot be read. `memory`: of that process. `text` NULL: nothing is kept. No lock, no allocation.
 */
bool user_text_read(struct user_text *text, const struct user_code *code, struct page_walk *memory, uint64_t from,
                    void *to, size_t bytes);

/* Where the jumps of the function are kept that begins at `start`, in a range with a table. *known: they are there. */
struct user_jumps *user_text_jumps(struct user_text *text, const struct user_range *range, uint64_t start, bool *known);

#endif
