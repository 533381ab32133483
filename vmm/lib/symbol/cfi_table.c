// SPDX-License-Identifier: BSD-2-Clause
/* Checks a table of call frame information, which another process made, and looks things up in it. */
#include <string.h>

#include "lib/symbol/cfi_priv.h"

static bool cell_fits(const struct cfi_cell *cell)
{
	return cell->target < CFI_REGISTERS && cell->how <= CFI_MEMORY &&
	       (cell->how < CFI_VALUE || cell->base < CFI_REGISTERS || cell->base == CFI_CFA);
}

static bool row_fits(const struct cfi_table *table, const struct cfi_row *row)
{
	if (row->cells == CFI_NONE || row->cells == CFI_UNKNOWN)
		return true;
	if (row->cells >= table->n_cells)
		return false;
	const struct cfi_cell *cfa = &table->cells[row->cells];

	if ((cfa->target != CFI_CFA && cfa->target != CFI_CFA_SIGNAL) ||
	    (cfa->how != CFI_VALUE && cfa->how != CFI_MEMORY) || cfa->base >= CFI_RETURN || cfa->count == 0 ||
	    cfa->count > CFI_CELLS_MAX || cfa->count > table->n_cells - row->cells)
		return false;
	for (unsigned i = 1; i < cfa->count; i++)
		if (!cell_fits(&cfa[i]) || (i > 1 && cfa[i].target <= cfa[i - 1].target))
			return false;
	return true;
}

static bool table_fits(const struct cfi_table *table)
{
	for (uint32_t i = 0; i < table->n_rows; i++)
		if (!row_fits(table, &table->rows[i]) || (i > 0 && table->rows[i].offset < table->rows[i - 1].offset))
			return false;
	for (uint32_t i = 0; i < table->n_index; i++)
		if (table->index[i] >= table->n_rows || (i > 0 && table->index[i] < table->index[i - 1]))
			return false;
	return true;
}

bool cfi_table_open(const void *block, size_t bytes, struct cfi_table *table)
{
	const struct cfi_table_header *header = block;
	struct cfi_table opened;

	if (bytes < sizeof(*header) || memcmp(header->magic, CFI_TABLE_MAGIC, sizeof(header->magic)) != 0 ||
	    header->n_rows == 0 ||
	    bytes - sizeof(*header) != (uint64_t)header->n_rows * sizeof(struct cfi_row) +
	                                       (uint64_t)header->n_cells * sizeof(struct cfi_cell) +
	                                       (uint64_t)header->n_index * sizeof(uint32_t))
		return false;
	opened = (struct cfi_table){.n_rows = header->n_rows, .n_cells = header->n_cells, .n_index = header->n_index};
	opened.rows = (const struct cfi_row *)(header + 1);
	opened.cells = (const struct cfi_cell *)(opened.rows + opened.n_rows);
	opened.index = (const uint32_t *)(opened.cells + opened.n_cells);
	if (!table_fits(&opened))
		return false;
	*table = opened;
	return true;
}

/* The last row at or before the offset; NULL. */
static const struct cfi_row *row_find(const struct cfi_table *table, uint64_t offset)
{
	uint32_t low = 0, high = table->n_rows;
	uint64_t block = (offset - table->rows[0].offset) / CFI_INDEX_BYTES;

	if (offset < table->rows[0].offset)
		return NULL;
	/* Where the index has no more, the last row is. */
	if (block < table->n_index)
		low = table->index[block];
	if (block + 1 < table->n_index)
		high = table->index[block + 1] + 1;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->rows[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &table->rows[low - 1] : NULL;
}

const struct cfi_cell *cfi_table_find(const struct cfi_table *table, uint64_t offset, uint32_t *why)
{
	const struct cfi_row *row = row_find(table, offset);

	*why = !row ? CFI_NONE : row->cells;
	return *why == CFI_NONE || *why == CFI_UNKNOWN ? NULL : &table->cells[row->cells];
}

bool cfi_table_covers(const struct cfi_table *table, uint64_t from, uint64_t to)
{
	const struct cfi_row *row = from <= to ? row_find(table, from) : NULL;
	const struct cfi_row *end = table->rows + table->n_rows;

	for (unsigned i = 0; row && row < end && row->offset <= to; i++, row++)
		if (row->cells == CFI_NONE || i == CFI_COVERS_ROWS_MAX)
			return false;
	return row != NULL;
}
