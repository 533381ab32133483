// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bytes of a file that a Linux guest has in its page cache: what programs execute is there, whether a process has
 * mapped the page or not. Everything in it is hostile; a read takes a bounded number of steps and allocates nothing.
 */
#ifndef VPROF_LINUX_PAGE_CACHE_H
#define VPROF_LINUX_PAGE_CACHE_H

#include "guest/file_code.h"
#include "guest/page_walk.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"

#define PAGE_CACHE_PAGE_BYTES 4096u

struct page_cache_layout {
	uint32_t mapping_host, mapping_root; /* in struct address_space: of the inode; of its pages' tree */
	uint32_t inode_size;
	uint32_t node_shift, node_slots;                  /* in struct xa_node */
	uint32_t folio_flags, folio_mapping, folio_index; /* in struct folio; before 5.16, in struct page */
	uint32_t page_bytes;                              /* of a struct page */
	uint64_t pages;  /* where the address of the array of all struct pages is; 0: it does not move */
	bool has_states; /* what follows, for page_cache_find */
	uint32_t inode_number, inode_super;  /* in struct inode */
	uint32_t super_bdi;                  /* in struct super_block */
	uint64_t no_bdi;                     /* what that is where pages are never written: ramfs, tmpfs */
	uint32_t dirty, writeback, uptodate; /* numbers of bits of the folio's flags */
};

/* Errors: TASK_ERROR for a kernel that is not for x86-64, TYPES_ERROR. */
bool page_cache_layout_load(const struct image *image, const struct symtab *symtab, const struct types *types,
                            struct page_cache_layout *layout, GError **error);

/* One file: its struct address_space. `walk` has the kernel's page tables. */
struct page_cache {
	const struct page_cache_layout *layout;
	struct page_walk *walk;
	uint64_t mapping;
	uint64_t pages; /* address of the first struct page */
	/* The node that has the last page that was looked for; 0: none. */
	struct {
		uint64_t address, first; /* number of the first page below it */
		uint64_t slots[64];
	} leaf;
};

/* False when it cannot be read, or the kernel does not have a file there. *bytes: the size of the file. */
bool page_cache_open(struct page_cache *cache, const struct page_cache_layout *layout, struct page_walk *walk,
                     uint64_t mapping, uint64_t *bytes);

/* Where page `number` of the file is; *at is set for the last two. Needs has_states. */
enum page_state page_cache_find(struct page_cache *cache, uint64_t number, gpa_t *at);

/* Page `number` of the file; false when it is not in memory, or is just being read in, or has gone meanwhile. */
bool page_cache_read(struct page_cache *cache, uint64_t number, uint8_t page[PAGE_CACHE_PAGE_BYTES]);

#endif
