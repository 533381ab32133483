// SPDX-License-Identifier: BSD-2-Clause
/* Where a process has code, and the tables of call frame information by which it is unwound. */
#ifndef VPROF_GUEST_USER_CODE_H
#define VPROF_GUEST_USER_CODE_H

#include <stdint.h>

#include "lib/symbol/cfi.h"

#define USER_CODE_RANGES 64u

struct user_range {
	uint64_t start, end;
	uint64_t file_offset;          /* of the byte at `start` */
	const struct cfi_table *table; /* of the file; NULL: none */
};

/* A program that CPython executes (guest/python.h). */
struct python_process {
	const struct python_layout *layout; /* NULL: it is none, or of a version that is not known */
	uint64_t runtime;                   /* the address of _PyRuntime */
};

/* The first USER_CODE_RANGES executable mappings of a process, by address. */
struct user_code {
	unsigned n;
	struct user_range ranges[USER_CODE_RANGES];
	struct python_process python;
};

/* The range that has an address; NULL. No lock, no allocation. */
static inline const struct user_range *user_code_find(const struct user_code *code, uint64_t address)
{
	unsigned low = 0, high = code->n;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (code->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < code->n && code->ranges[low].start <= address ? &code->ranges[low] : NULL;
}

#endif
