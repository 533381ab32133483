// SPDX-License-Identifier: BSD-2-Clause
/* SDM Vol. 3A, 4.5 "4-level paging and 5-level paging". */
#include "guest/page_walk.h"

#define PAGE_SHIFT 12u
#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)
#define LEVEL_BITS 9u

/* SDM Vol. 3A, tables 4-14 to 4-20. */
#define ENTRY_PRESENT (UINT64_C(1) << 0)
#define ENTRY_WRITABLE (UINT64_C(1) << 1)
#define ENTRY_NO_EXECUTE (UINT64_C(1) << 63)
#define ENTRY_PAGE_SIZE (UINT64_C(1) << 7)
#define ENTRY_ADDRESS_MASK UINT64_C(0x000ffffffffff000)

/* All bits from the topmost translated one up are equal (SDM Vol. 1, 3.3.7.1). */
static bool is_canonical(uint64_t gva, unsigned levels)
{
	unsigned top = PAGE_SHIFT + levels * LEVEL_BITS - 1;
	uint64_t high = gva >> top;

	return high == 0 || high == UINT64_MAX >> top;
}

/* A leaf can be an entry of the first level, or one with the page size bit in levels 2 (2 MiB) and 3 (1 GiB). */
static bool walk_tables(const struct page_walk *walk, uint64_t gva_page, struct page_leaf *leaf)
{
	unsigned levels = walk->la57 ? 5 : 4;
	uint64_t table = walk->cr3 & ENTRY_ADDRESS_MASK;

	leaf->writable = leaf->executable = true;
	for (unsigned level = levels; level > 0; level--) {
		unsigned shift = PAGE_SHIFT + (level - 1) * LEVEL_BITS;
		uint64_t index = gva_page >> shift & ((1u << LEVEL_BITS) - 1);
		uint64_t entry;

		if (!walk->guest->ops->memory_read(walk->guest, (gpa_t){table + index * sizeof(entry)}, &entry,
		                                   sizeof(entry)))
			return false;
		if (!(entry & ENTRY_PRESENT))
			return false;
		leaf->writable = leaf->writable && (entry & ENTRY_WRITABLE);
		leaf->executable = leaf->executable && !(entry & ENTRY_NO_EXECUTE);
		if (level == 1 || ((level == 2 || level == 3) && (entry & ENTRY_PAGE_SIZE))) {
			uint64_t offset_mask = (UINT64_C(1) << shift) - 1;

			leaf->gva = gva_page & ~offset_mask;
			leaf->gpa = entry & ENTRY_ADDRESS_MASK & ~offset_mask;
			leaf->bytes = offset_mask + 1;
			return true;
		}
		table = entry & ENTRY_ADDRESS_MASK;
	}
	return false;
}

bool page_tables_x86(const struct page_walk *walk, gva_t from, struct page_leaf *leaf)
{
	return is_canonical(from.value, walk->la57 ? 5 : 4) && walk_tables(walk, from.value & ~(PAGE_BYTES - 1), leaf);
}
