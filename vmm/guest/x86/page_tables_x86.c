// SPDX-License-Identifier: BSD-2-Clause
/* SDM Vol. 3A, 4.5 "4-level paging and 5-level paging". */
#include "guest/x86/page_tables_x86.h"

#include "guest/processor.h"

#define PAGE_SHIFT 12u
#define PAGE_BYTES (UINT64_C(1) << PAGE_SHIFT)
#define LEVEL_BITS 9u

/* SDM Vol. 3A, tables 4-14 to 4-20. */
#define ENTRY_WRITABLE (UINT64_C(1) << 1)
#define ENTRY_USER (UINT64_C(1) << 2)
#define ENTRY_NO_EXECUTE (UINT64_C(1) << 63)

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
	unsigned levels = walk->tables.la57 ? 5 : 4;
	uint64_t table = walk->tables.cr3 & ENTRY_ADDRESS;

	leaf->writable = leaf->executable = leaf->user = true;
	for (unsigned level = levels; level > 0; level--) {
		unsigned shift = PAGE_SHIFT + (level - 1) * LEVEL_BITS;
		uint64_t index = gva_page >> shift & ((1u << LEVEL_BITS) - 1);
		const gpa_t at = {table + index * sizeof(uint64_t)};
		uint64_t entry;

		if (!walk->guest->ops->memory_read(walk->guest, at, &entry, sizeof(entry)))
			return false;
		if (!(entry & ENTRY_PRESENT))
			return false;
		leaf->writable = leaf->writable && (entry & ENTRY_WRITABLE);
		leaf->user = leaf->user && (entry & ENTRY_USER);
		leaf->executable = leaf->executable && !(entry & ENTRY_NO_EXECUTE);
		if (level == 1 || ((level == 2 || level == 3) && (entry & ENTRY_PAGE_SIZE))) {
			uint64_t offset_mask = (UINT64_C(1) << shift) - 1;

			leaf->page = (struct gva_range){gva_page & ~offset_mask, offset_mask + 1};
			leaf->gpa = entry & ENTRY_ADDRESS & ~offset_mask;
			leaf->entry_at = at;
			leaf->entry = entry;
			return true;
		}
		table = entry & ENTRY_ADDRESS;
	}
	return false;
}

static bool leaf_find(const struct page_walk *walk, gva_t from, struct page_leaf *leaf)
{
	return is_canonical(from.value, walk->tables.la57 ? 5 : 4) &&
	       walk_tables(walk, from.value & ~(PAGE_BYTES - 1), leaf);
}

void page_walk_init(struct page_walk *walk, struct guest *guest, uint64_t cr3, bool la57)
{
	page_walk_init_tables(walk, guest, &(struct guest_tables){.cr3 = cr3, .la57 = la57});
}

static void enter(struct page_walk *walk, gpa_t root)
{
	page_walk_init(walk, walk->guest, root.value, walk->tables.la57);
}

static bool kernels(const struct guest *guest G_GNUC_UNUSED, uint64_t linked G_GNUC_UNUSED, struct guest_regs *regs)
{
	if (!(regs->cr3 & CR3_USER_TABLES))
		return false;
	regs->cr3 &= ~CR3_USER_TABLES;
	return true;
}

/* Page tables that are no longer in use may lead anywhere; the kernel's map themselves. */
static bool tables_lead(gva_t page_tables, struct guest *guest, uint64_t cr3, bool la57, struct page_walk *walk)
{
	gpa_t tables, again;

	page_walk_init(walk, guest, cr3, la57);
	if (!page_walk_translate(walk, page_tables, &tables))
		return false;
	page_walk_init(walk, guest, tables.value, la57);
	return page_walk_translate(walk, page_tables, &again) && again.value == tables.value;
}

static bool kernel_open(gva_t page_tables, struct guest *guest, const struct guest_regs *regs, struct page_walk *walk)
{
	return page_tables.value != 0 &&
	       (tables_lead(page_tables, guest, regs->cr3, regs->la57, walk) ||
	        ((regs->cr3 & CR3_USER_TABLES) &&
	         tables_lead(page_tables, guest, regs->cr3 & ~CR3_USER_TABLES, regs->la57, walk)));
}

/* CR3, and in bit 0 whether there are five levels. */
static bool kernel_store(struct page_walk *walk, gva_t page_tables, uint64_t words[2])
{
	gpa_t tables;

	if (page_tables.value == 0 || !page_walk_translate(walk, page_tables, &tables))
		return false;
	words[0] = tables.value | (walk->tables.la57 ? 1 : 0);
	words[1] = 0;
	return true;
}

static struct guest_tables kernel_load(const uint64_t words[2])
{
	return (struct guest_tables){.cr3 = words[0] & ~UINT64_C(1), .la57 = words[0] & 1};
}

/* Of both top-level tables of a process, without the tag of the TLB (SDM Vol. 3A, 4.5). */
static uint64_t process_root(const struct guest_tables *tables)
{
	return tables->cr3 & ~(CR3_USER_TABLES | UINT64_C(0xfff));
}

const struct processor_memory memory_x86 = {
	.leaf = leaf_find,
	.enter = enter,
	.kernels = kernels,
	.kernel_open = kernel_open,
	.kernel_store = kernel_store,
	.kernel_load = kernel_load,
	.process_root = process_root,
	.root_is_name = true,
};
