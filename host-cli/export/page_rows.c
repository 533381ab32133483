// SPDX-License-Identifier: BSD-2-Clause
#include "export/page_rows.h"

#include <string.h>

#include "lib/profile/hash.h"

#define SLOTS_AT_FIRST 1024u

void page_rows_clear(struct page_rows *rows)
{
	g_free(rows->rows);
	g_free(rows->slots);
	*rows = (struct page_rows){0};
}

static size_t row_hash(const struct page_row *row)
{
	return hash_mix((uint64_t)row->node << 32 | row->task) ^
	       hash_mix(((uint64_t)row->cpu << 32 | row->phase_set) ^
	                hash_mix(row->slice << 4 ^ row->state ^ (uintptr_t)row->waker << 8));
}

bool page_row_equal(const struct page_row *a, const struct page_row *b)
{
	return a->node == b->node && a->cpu == b->cpu && a->task == b->task && a->phase_set == b->phase_set &&
	       a->state == b->state && a->waker == b->waker && a->slice == b->slice;
}

void page_row_grow(struct page_row *known, const struct page_row *row)
{
	known->samples += row->samples;
	known->period += row->period;
}

/* The slot that has the row like this one, or the free one where it belongs. */
static uint32_t *slot_find(const struct page_rows *rows, const struct page_row *row)
{
	size_t i = row_hash(row) & (rows->n_slots - 1);

	while (rows->slots[i] != 0 && !page_row_equal(&rows->rows[rows->slots[i] - 1], row))
		i = (i + 1) & (rows->n_slots - 1);
	return &rows->slots[i];
}

static void grow(struct page_rows *rows)
{
	rows->n_slots = rows->n_slots != 0 ? 2 * rows->n_slots : SLOTS_AT_FIRST;
	rows->n_max = (uint32_t)(rows->n_slots / 2);
	rows->rows = g_renew(struct page_row, rows->rows, rows->n_max);
	g_free(rows->slots);
	rows->slots = g_new0(uint32_t, rows->n_slots);
	for (uint32_t i = 0; i < rows->n; i++)
		*slot_find(rows, &rows->rows[i]) = i + 1;
}

uint32_t page_rows_add(struct page_rows *rows, const struct page_row *row)
{
	if (rows->n == rows->n_max)
		grow(rows);
	uint32_t *slot = slot_find(rows, row);

	if (*slot != 0) {
		page_row_grow(&rows->rows[*slot - 1], row);
	} else {
		rows->rows[rows->n] = *row;
		*slot = ++rows->n;
	}
	return *slot - 1;
}

void page_rows_change(struct page_rows *rows, void (*change)(struct page_row *row, const void *data), const void *data)
{
	const uint32_t n = rows->n;

	if (n == 0)
		return;
	memset(rows->slots, 0, rows->n_slots * sizeof(*rows->slots));
	rows->n = 0;
	/* A row goes to where it was, or to one that was before it. */
	for (uint32_t i = 0; i < n; i++) {
		struct page_row row = rows->rows[i];

		change(&row, data);
		page_rows_add(rows, &row);
	}
}
