// SPDX-License-Identifier: BSD-2-Clause
/*
 * Guest virtual memory, read through the guest's own page tables (SDM Vol. 3A, 4.5 "4-level paging and 5-level
 * paging").
 *
 * Guest page tables are hostile: every entry is copied once and only ever yields an address for guest_ops.memory_read,
 * which checks it. A walk is at most five reads. Neither locks nor allocates, so that the sampling path may use it.
 */
#ifndef VPROF_GUEST_PAGE_WALK_H
#define VPROF_GUEST_PAGE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"
#include "guest/snapshot.h"

/* Pages that one call chain touches: a stack or two. Where a kernel keeps its structures they are large. */
#define PAGE_WALK_CACHED 4u

/*
 * One address space at one moment. The translations it remembers live no longer than it does: make a new one for every
 * sample, and what the guest does to CR3 or to its tables in between cannot show.
 */
struct page_walk {
	struct guest *guest;
	/* NULL after page_walk_init. Otherwise page_walk_read is of this, and not of what the guest has there now. */
	const struct snapshot *snapshot;
	uint64_t cr3;
	bool la57; /* CR4.LA57: five levels */
	unsigned next;
	struct {
		uint64_t gva, gpa, bytes; /* a page of whatever size; 0 bytes: none */
	} cache[PAGE_WALK_CACHED];
};

void page_walk_init(struct page_walk *walk, struct guest *guest, uint64_t cr3, bool la57);

/* False when `from` is not canonical, not mapped, or its tables or its page are not RAM. */
bool page_walk_translate(struct page_walk *walk, gva_t from, gpa_t *to);

/* The page, of whatever size, that maps an address. */
struct page_leaf {
	uint64_t gva, gpa; /* of its first byte */
	uint64_t bytes;
	bool writable, executable; /* in kernel mode */
};

/* As page_walk_translate, with all that the tables say; nothing is remembered. */
bool page_walk_leaf(const struct page_walk *walk, gva_t from, struct page_leaf *leaf);

/* Copies `bytes` from `from`; may cross pages. False, with `to` undefined, when any of it cannot be read. */
bool page_walk_read(struct page_walk *walk, gva_t from, void *to, size_t bytes);

/* The same of what only a kernel has: false in the lower half of the address space. */
static inline bool page_walk_read_kernel(struct page_walk *walk, gva_t from, void *to, size_t bytes)
{
	return from.value >> 63 && page_walk_read(walk, from, to, bytes);
}

#endif
