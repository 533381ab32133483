// SPDX-License-Identifier: BSD-2-Clause
#include "linux/kernel_scan.h"

#include <glib.h>
#include <string.h>

#include "guest/x86/page_tables_x86.h"

#define PAGE_BYTES 4096u
#define ENTRIES 512u
#define CHUNK_BYTES (256u << 10)
/* Top tables lie before level3_kernel_pgt, or behind it, with a few other tables and their copies for user space. */
#define NEAR_PAGES 64u
/* A kernel has one such table, and leaves a few behind. */
#define TRIES_MAX 256u

static uint64_t entry_address(uint64_t entry)
{
	return entry & ENTRY_PRESENT ? entry & ENTRY_ADDRESS : 0;
}

/* Entries 510 and 511 are the last 2 GiB: the kernel, and its fixed mappings. */
static bool is_kernel_table(const uint64_t *page)
{
	if (!entry_address(page[ENTRIES - 1]) || !entry_address(page[ENTRIES - 2]) ||
	    entry_address(page[ENTRIES - 1]) == entry_address(page[ENTRIES - 2]))
		return false;
	for (unsigned i = 0; i < ENTRIES - 2; i++)
		if (page[i] != 0)
			return false;
	return true;
}

/* A top table has more in its upper half: the mapping of all memory. That of the early boot has not, and is freed. */
static bool is_top_table(const uint64_t *page)
{
	for (unsigned i = ENTRIES / 2; i < ENTRIES - 1; i++)
		if (page[i] & ENTRY_PRESENT)
			return true;
	return false;
}

/* The page near `gpa` of which the last entry leads to `table`; 0: none. */
static uint64_t find_above(struct guest *guest, uint64_t gpa, uint64_t table, bool top)
{
	const uint64_t first = gpa - MIN(gpa, NEAR_PAGES * PAGE_BYTES);
	uint64_t page[ENTRIES];

	for (uint64_t at = first; at < gpa + NEAR_PAGES * PAGE_BYTES; at += PAGE_BYTES)
		if (guest->ops->memory_read(guest, (gpa_t){at}, page, sizeof(page)) &&
		    entry_address(page[ENTRIES - 1]) == table && (!top || is_top_table(page)))
			return at;
	return 0;
}

static uint64_t find_top(struct guest *guest, uint64_t table, bool la57)
{
	uint64_t level4 = la57 ? find_above(guest, table, table, false) : table;

	return level4 ? find_above(guest, table, level4, true) : 0;
}

static uint64_t scan_pages(struct os_scan *scan, struct guest *guest, const uint8_t *bytes, uint64_t gpa, uint64_t n,
                           bool la57)
{
	uint64_t page[ENTRIES];

	for (uint64_t at = 0; at < n && scan->tried < TRIES_MAX; at += PAGE_BYTES) {
		memcpy(page, bytes + at, sizeof(page));
		if (!is_kernel_table(page))
			continue;
		scan->tried++;
		uint64_t top = find_top(guest, gpa + at, la57);

		if (top)
			return top;
	}
	return 0;
}

uint64_t kernel_tables_scan(struct os_scan *scan, struct look *look, os_scan_next next, void *data, bool la57)
{
	g_autofree uint8_t *bytes = g_malloc(CHUNK_BYTES);
	struct os_scan_run run;
	uint64_t top = 0, end;

	while (scan->tried < TRIES_MAX && look_take(look, 0) && next(data, scan->from, &run)) {
		run.bytes = MIN(run.bytes, CHUNK_BYTES);
		if (__builtin_add_overflow(run.gpa, run.bytes, &end) || end <= scan->from)
			break;
		if (run.bytes > 0 && look->guest.ops->memory_read(&look->guest, (gpa_t){run.gpa}, bytes, run.bytes))
			top = scan_pages(scan, &look->guest, bytes, run.gpa, run.bytes, la57);
		if (top != 0)
			break;
		if (look_gave_up(look)) /* of this piece, not all was looked at */
			return 0;
		scan->from = end;
	}
	if (!look_gave_up(look))
		*scan = (struct os_scan){0};
	return top;
}
