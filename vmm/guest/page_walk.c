// SPDX-License-Identifier: BSD-2-Clause
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

void page_walk_init(struct page_walk *walk, struct guest *guest, uint64_t cr3, bool la57)
{
	walk->guest = guest;
	walk->snapshot = NULL;
	walk->cr3 = cr3;
	walk->la57 = la57;
	walk->next = 0;
	for (unsigned i = 0; i < PAGE_WALK_CACHED; i++)
		walk->cache[i].bytes = 0;
}

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

bool page_walk_leaf(const struct page_walk *walk, gva_t from, struct page_leaf *leaf)
{
	return is_canonical(from.value, walk->la57 ? 5 : 4) && walk_tables(walk, from.value & ~(PAGE_BYTES - 1), leaf);
}

bool page_walk_translate(struct page_walk *walk, gva_t from, gpa_t *to)
{
	struct page_leaf leaf;

	for (unsigned i = 0; i < PAGE_WALK_CACHED; i++) {
		uint64_t offset = from.value - walk->cache[i].gva;

		if (offset < walk->cache[i].bytes) {
			*to = (gpa_t){walk->cache[i].gpa + offset};
			return true;
		}
	}
	if (!page_walk_leaf(walk, from, &leaf))
		return false;
	walk->cache[walk->next].gva = leaf.gva;
	walk->cache[walk->next].gpa = leaf.gpa;
	walk->cache[walk->next].bytes = leaf.bytes;
	walk->next = (walk->next + 1) % PAGE_WALK_CACHED;
	*to = (gpa_t){leaf.gpa + (from.value - leaf.gva)};
	return true;
}

bool page_walk_read(struct page_walk *walk, gva_t from, void *to, size_t bytes)
{
	uint8_t *out = to;

	if (walk->snapshot)
		return snapshot_read(walk->snapshot, from, to, bytes);
	while (bytes > 0) {
		size_t in_page = PAGE_BYTES - (from.value & (PAGE_BYTES - 1));
		size_t n = bytes < in_page ? bytes : in_page;
		gpa_t gpa;

		if (!page_walk_translate(walk, from, &gpa) || !walk->guest->ops->memory_read(walk->guest, gpa, out, n))
			return false;
		out += n;
		bytes -= n;
		from.value += n;
	}
	return true;
}
