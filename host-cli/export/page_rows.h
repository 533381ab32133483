// SPDX-License-Identifier: BSD-2-Clause
/* Rows of a page while samples are read: those that are alike are one. They lie behind each other, in one array. */
#ifndef VPROF_CLI_EXPORT_PAGE_ROWS_H
#define VPROF_CLI_EXPORT_PAGE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "export/page_profile.h"

struct page_rows {
	struct page_row *rows;
	uint32_t n, n_max;
	uint32_t *slots; /* numbers of rows + 1, 0: free; open addressing, linear probing, at most half full */
	size_t n_slots;  /* a power of two; 0: none yet */
};

/* All zero is empty. */
void page_rows_clear(struct page_rows *rows);

/* Whether two rows count the same. */
bool page_row_equal(const struct page_row *a, const struct page_row *b);
/* Adds what `row` counts to `known`. */
void page_row_grow(struct page_row *known, const struct page_row *row);

/* Adds what the row counts; returns its number, until the next page_rows_change. */
uint32_t page_rows_add(struct page_rows *rows, const struct page_row *row);
/* Changes each row; those that are alike then become one. */
void page_rows_change(struct page_rows *rows, void (*change)(struct page_row *row, const void *data), const void *data);

#endif
