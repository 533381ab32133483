// SPDX-License-Identifier: BSD-2-Clause
/*
 * Page tables of a hostile guest. An input has the number of levels in its first byte and a root in the next two, then
 * as in fuzz_changes.h what memory has, on top of leaves of each size at both ends of the address space. Every page
 * that is found lies within it, has a size that there is, and maps its first and last byte to where its leaf says; the
 * extent of a kernel at any place ends.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_changes.h"
#include "fuzz_target.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/kernel_memory.h"
#include "linux/search_linux_priv.h"

#define ROOT UINT64_C(0x8000)
#define PAGE_BYTES UINT64_C(4096)
#define HEAD_BYTES 3u

static struct fake_guest fake;

static void leaves_make(unsigned levels)
{
	fake_guest_init(&fake);
	for (unsigned size = 1; size <= 3; size++) {
		const uint64_t bytes = PAGE_BYTES << 9 * (size - 1);

		/* Below the last page of 2 MiB one of 4 KiB, and so on; the same above the first. */
		fake_map(&fake, ROOT, levels, size == 3 ? -bytes : -bytes - (UINT64_C(1) << 30), 0, size);
		fake_map(&fake, ROOT, levels, size == 3 ? 0 : (UINT64_C(1) << 30) + bytes, 0, size);
	}
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void leaf_check(struct page_walk *walk, uint64_t at)
{
	struct page_leaf leaf;
	gpa_t first, last;
	uint8_t word[16];

	if (!page_walk_leaf(walk, (gva_t){at}, &leaf))
		return;
	const uint64_t bytes = leaf.page.bytes, end = leaf.page.first + (bytes - 1);

	check(bytes == PAGE_BYTES || bytes == PAGE_BYTES << 9 || bytes == PAGE_BYTES << 18);
	check(leaf.page.first % bytes == 0 && bytes <= gva_room(leaf.page.first));
	check(gva_range_has(leaf.page, at) && gva_range_has(leaf.page, end));
	check(page_walk_translate(walk, (gva_t){leaf.page.first}, &first) && first.value == leaf.gpa);
	check(page_walk_translate(walk, (gva_t){end}, &last) && last.value == page_leaf_gpa(&leaf, end).value);
	page_walk_read(walk, (gva_t){at}, word, sizeof(word));
	check(!page_walk_read(walk, (gva_t){UINT64_MAX - 14}, word, sizeof(word)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t places[] = {0,
	                                  1,
	                                  PAGE_BYTES << 9,
	                                  (UINT64_C(1) << 30) - 1,
	                                  (UINT64_C(1) << 30) + PAGE_BYTES,
	                                  UINT64_C(0x00007fffffffffff),
	                                  UINT64_C(0xffff800000000000),
	                                  UINT64_C(0xffffffff80000000),
	                                  UINT64_C(0xffffffffbffff000),
	                                  UINT64_C(0xffffffffc0000000),
	                                  UINT64_MAX - PAGE_BYTES,
	                                  UINT64_MAX};
	uint16_t root = 0;

	if (size < HEAD_BYTES)
		return 0;
	const bool la57 = data[0] & 1;

	memcpy(&root, data + 1, sizeof(root));
	leaves_make(la57 ? 5 : 4);
	memory_change(&fake, data + HEAD_BYTES, size - HEAD_BYTES);
	for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
		struct page_walk walk;

		page_walk_init(&walk, &fake.guest, ROOT ^ root, la57);
		leaf_check(&walk, places[i]);

		const struct gva_range extent = search_processor_of(GUEST_X86_64)->extent(&walk, places[i]);

		check(extent.bytes <= KERNEL_MEMORY_BYTES_MAX && extent.bytes <= gva_room(extent.first));
	}
	return 0;
}
