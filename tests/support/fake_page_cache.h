// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file in the page cache of a fake guest: the array of struct pages, an inode, and a struct address_space, which are
 * one after the other from FAKE_CACHE on, at kernel addresses that are guest physical ones above FAKE_KERNEL.
 */
#ifndef VPROF_TEST_SUPPORT_FAKE_PAGE_CACHE_H
#define VPROF_TEST_SUPPORT_FAKE_PAGE_CACHE_H

#include "fake_process.h"
#include "linux/page_cache.h"

#define FAKE_CACHE (FAKE_KERNEL + 0x60000)
#define FAKE_PAGE_BYTES 64u /* of a struct page */
#define FAKE_INODE (FAKE_CACHE + 0x3000)
#define FAKE_MAPPING (FAKE_INODE + 0x80)
#define FAKE_PAGES_BASE (FAKE_INODE + 0xf8) /* as vmemmap_base */
#define FAKE_SUPER (FAKE_INODE + 0x100)
#define FAKE_NO_BDI (FAKE_INODE + 0x140) /* as noop_backing_dev_info */
/* Bits of a folio's flags. */
enum { FAKE_LOCKED, FAKE_WRITEBACK, FAKE_UPTODATE = 3, FAKE_DIRTY };

static const struct page_cache_layout fake_cache_layout = {
	.mapping_host = 0,
	.mapping_root = 0x10,
	.inode_size = 0x50,
	.node_shift = 0,
	.node_slots = 0x28,
	.folio_flags = 0,
	.folio_mapping = 0x18,
	.folio_index = 0x20,
	.page_bytes = FAKE_PAGE_BYTES,
	.pages = FAKE_PAGES_BASE,
	.has_states = true,
	.inode_number = 0x58,
	.inode_super = 0x60,
	.super_bdi = 8,
	.no_bdi = FAKE_NO_BDI,
	.dirty = FAKE_DIRTY,
	.writeback = FAKE_WRITEBACK,
	.uptodate = FAKE_UPTODATE,
};

static inline void fake_cache_init(struct fake_process *process, uint64_t bytes)
{
	fake_set(process, FAKE_PAGES_BASE, 0, FAKE_CACHE);
	fake_set(process, FAKE_INODE, fake_cache_layout.inode_size, bytes);
	fake_set(process, FAKE_INODE, fake_cache_layout.inode_number, 77);
	fake_set(process, FAKE_INODE, fake_cache_layout.inode_super, FAKE_SUPER);
	fake_set(process, FAKE_MAPPING, fake_cache_layout.mapping_host, FAKE_INODE);
}

/* Makes the page at `gpa` the first of a folio, which begins with page `index` of the file. Returns its entry. */
static inline uint64_t fake_folio(struct fake_process *process, uint64_t gpa, uint64_t index)
{
	uint64_t folio = FAKE_CACHE + (gpa >> 12) * FAKE_PAGE_BYTES;

	fake_set(process, folio, fake_cache_layout.folio_flags, 0x28);
	fake_set(process, folio, fake_cache_layout.folio_mapping, FAKE_MAPPING);
	fake_set(process, folio, fake_cache_layout.folio_index, index);
	return folio;
}

/* An empty node, as an entry. */
static inline uint64_t fake_cache_node(struct fake_process *process, uint8_t shift)
{
	uint64_t node = fake_object(process, 1024);

	fake_set(process, node, fake_cache_layout.node_shift, shift);
	return node | 2;
}

static inline void fake_cache_slot(struct fake_process *process, uint64_t node, unsigned i, uint64_t entry)
{
	fake_set(process, node - 2, fake_cache_layout.node_slots + 8 * i, entry);
}

#endif
