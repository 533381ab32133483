// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stage 1 translation of EL1 and EL0 (Arm ARM, D8.2 and D8.3), of addresses of 52 bits at most: the lower half of
 * the address space by TTBR0_EL1, the upper by TTBR1_EL1.
 */
#include "guest/processor.h"

/* TCR_EL1 (Arm ARM, D19.2): one half is the other's, 16 bits further up, but for the granule's code. */
#define TCR_SIZE(tcr, high) ((tcr) >> ((high) ? 16 : 0) & 63)
#define TCR_DISABLED(tcr, high) ((tcr) >> ((high) ? 23 : 7) & 1)
#define TCR_GRANULE(tcr, high) ((tcr) >> ((high) ? 30 : 14) & 3)
#define TCR_52_BITS(tcr) ((tcr) >> 59 & 1) /* DS: with pages of 4 and 16 KiB */
#define ADDRESS_BITS_MAX 48u
#define ADDRESS_BITS_MAX_WIDE 52u
#define ADDRESS_BITS_MIN 16u

#define TTBR_ADDRESS UINT64_C(0x0000ffffffffffc0)
/* Descriptors (Arm ARM, D8.3.1). */
#define ENTRY_TYPE 3u
#define ENTRY_TABLE_OR_PAGE 3u
#define ENTRY_BLOCK 1u
#define ENTRY_READ_ONLY (UINT64_C(1) << 7)
#define ENTRY_KERNEL_NO_EXECUTE (UINT64_C(1) << 53)
#define ENTRY_ADDRESS UINT64_C(0x0000fffffffff000)
#define ENTRY_ADDRESS_WIDE UINT64_C(0x0003fffffffff000)

#define PHYSICAL_PAGE UINT64_C(0x1000) /* a leaf without translation */

struct half {
	uint64_t table;
	unsigned page_shift, address_bits;
	bool wide; /* descriptors of physical addresses of 52 bits */
};

/* Of a table or a page: the highest bits of 52 are where those of 48 have others (Arm ARM, D8.3.1). */
static uint64_t entry_address(const struct half *half, uint64_t entry)
{
	if (half->page_shift == 16)
		return (entry & ENTRY_ADDRESS & ~UINT64_C(0xffff)) | (entry >> 12 & 15) << 48;
	return half->wide ? (entry & ENTRY_ADDRESS_WIDE) | (entry >> 8 & 3) << 50 : entry & ENTRY_ADDRESS;
}

/* False: that half is turned off, or of a size that is not known here. */
static bool half_of(const struct guest_tables_arm64 *tables, bool high, struct half *half)
{
	static const uint8_t low_shifts[] = {12, 16, 14, 0}, high_shifts[] = {0, 14, 12, 16};

	half->page_shift = (high ? high_shifts : low_shifts)[TCR_GRANULE(tables->tcr, high)];
	half->address_bits = 64 - (unsigned)TCR_SIZE(tables->tcr, high);
	half->table = (high ? tables->ttbr1 : tables->ttbr0) & TTBR_ADDRESS;
	half->wide = half->page_shift == 16 || TCR_52_BITS(tables->tcr);
	return !TCR_DISABLED(tables->tcr, high) && half->page_shift != 0 &&
	       half->address_bits <= (half->wide ? ADDRESS_BITS_MAX_WIDE : ADDRESS_BITS_MAX) &&
	       half->address_bits >= ADDRESS_BITS_MIN && half->address_bits > half->page_shift;
}

/*
 * Blocks are entries of the level above the pages, and of the one above that with the smallest pages or with addresses
 * of 52 bits; with both, of a third one.
 */
static bool may_be_block(unsigned level, const struct half *half)
{
	return level == 2 || (level == 3 && (half->page_shift == 12 || half->wide)) ||
	       (level == 4 && half->page_shift == 12 && half->wide);
}

static bool walk_half(const struct page_walk *walk, const struct half *half, uint64_t gva, struct page_leaf *leaf)
{
	const unsigned level_bits = half->page_shift - 3; /* an entry has 8 bytes */
	const unsigned levels = (half->address_bits - half->page_shift + level_bits - 1) / level_bits;
	uint64_t table = half->table, index = gva & ((UINT64_C(1) << half->address_bits) - 1);

	leaf->writable = leaf->executable = true;
	for (unsigned level = levels; level > 0; level--) {
		const unsigned shift = half->page_shift + (level - 1) * level_bits;
		const uint64_t inside = (UINT64_C(1) << shift) - 1;
		uint64_t entry;

		if (!walk->guest->ops->memory_read(walk->guest, (gpa_t){table + (index >> shift) * sizeof(entry)},
		                                   &entry, sizeof(entry)))
			return false;
		index &= inside;
		const unsigned type = entry & ENTRY_TYPE;
		const bool is_leaf =
			level == 1 ? type == ENTRY_TABLE_OR_PAGE : type == ENTRY_BLOCK && may_be_block(level, half);
		if (is_leaf) {
			leaf->writable = !(entry & ENTRY_READ_ONLY);
			leaf->executable = !(entry & ENTRY_KERNEL_NO_EXECUTE);
			leaf->page = (struct gva_range){gva & ~inside, inside + 1};
			leaf->gpa = entry_address(half, entry) & ~inside;
			return true;
		}
		if (level == 1 || type != ENTRY_TABLE_OR_PAGE)
			return false;
		table = entry_address(half, entry) & ~((UINT64_C(1) << half->page_shift) - 1);
	}
	return false;
}

static bool leaf_find(const struct page_walk *walk, gva_t from, struct page_leaf *leaf)
{
	const bool high = from.value >> 63 != 0;
	struct half half;

	if (!walk->tables.arm64.mmu) {
		const uint64_t page = from.value & ~(PHYSICAL_PAGE - 1);

		*leaf = (struct page_leaf){
			.page = {page, PHYSICAL_PAGE}, .gpa = page, .writable = true, .executable = true};
		return true;
	}
	if (!half_of(&walk->tables.arm64, high, &half) ||
	    from.value >> half.address_bits != (high ? UINT64_MAX >> half.address_bits : 0))
		return false;
	return walk_half(walk, &half, from.value, leaf);
}

static void enter(struct page_walk *walk, gpa_t root)
{
	walk->tables.arm64.ttbr0 = root.value;
}

/* The kernel's are in its image (arch/arm64/kernel/entry.S, tramp_map_kernel). */
static bool kernels(const struct guest *guest, uint64_t linked, struct guest_regs *regs)
{
	const struct image_start *start = &guest->start;
	const uint64_t from_start = linked - start->gva;

	if (from_start >= start->bytes)
		return false;
	regs->arm64.tables.ttbr1 = start->gpa + from_start;
	return true;
}

/* The kernel's half has tables of its own, which are the same in all processes. */
static bool kernel_open(gva_t page_tables, struct guest *guest, const struct guest_regs *regs, struct page_walk *walk)
{
	gpa_t tables;

	page_walk_init_regs(walk, guest, regs);
	return page_tables.value != 0 && page_walk_translate(walk, page_tables, &tables);
}

static bool kernel_store(struct page_walk *walk, gva_t page_tables G_GNUC_UNUSED, uint64_t words[2])
{
	words[0] = walk->tables.arm64.ttbr1;
	words[1] = walk->tables.arm64.tcr;
	return true;
}

static struct guest_tables kernel_load(const uint64_t words[2])
{
	return (struct guest_tables){.processor = GUEST_ARM64,
	                             .arm64 = {.ttbr1 = words[0], .tcr = words[1], .mmu = true}};
}

static uint64_t process_root(const struct guest_tables *tables)
{
	return tables->arm64.ttbr0 & TTBR_ADDRESS;
}

const struct processor_memory memory_arm64 = {
	.leaf = leaf_find,
	.enter = enter,
	.kernels = kernels,
	.kernel_open = kernel_open,
	.kernel_store = kernel_store,
	.kernel_load = kernel_load,
	.process_root = process_root,
};
