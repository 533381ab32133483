// SPDX-License-Identifier: BSD-2-Clause
/*
 * Guest virtual memory, read through the guest's own page tables: x86/page_tables_x86.c, arm64/page_tables_arm64.c.
 *
 * Guest page tables are hostile: every entry is copied once and only used as an address for guest_ops.memory_read,
 * which checks it. A walk takes at most five reads, no lock and no allocation, so the sampling path may use it.
 */
#ifndef VPROF_GUEST_PAGE_WALK_H
#define VPROF_GUEST_PAGE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"
#include "guest/gva_range.h"
#include "guest/snapshot.h"

/* Pages that one call chain touches: one or two stacks. The kernel keeps its structures in large pages. */
#define PAGE_WALK_CACHED 4u

/*
 * An address space at one moment. It remembers translations, so make a new one for every sample: the guest may change
 * its tables in between.
 */
struct page_walk {
	struct guest *guest;
	/* NULL after page_walk_init_regs. If set, page_walk_read reads the snapshot instead of guest memory. */
	const struct snapshot *snapshot;
	struct guest_tables tables;
	/* What was read ahead, at one moment: page_walk_read copies what is within it. */
	struct snapshot_span ahead;
	unsigned next;
	struct {
		struct gva_range page; /* of any size */
		uint64_t gpa;
	} cache[PAGE_WALK_CACHED];
};

/* By the tables of a vCPU. */
void page_walk_init_regs(struct page_walk *walk, struct guest *guest, const struct guest_regs *regs);
/* The same by these tables. */
void page_walk_init_tables(struct page_walk *walk, struct guest *guest, const struct guest_tables *tables);

/*
 * By the kernel's own page tables, which stay: those of a vCPU lead there, or those of the kernel beside them.
 * `page_tables`: where the kernel has its top-level one. False where they do not, as those of a process that has ended
 * may.
 */
bool page_walk_init_kernel(struct page_walk *walk, gva_t page_tables, struct guest *guest,
                           const struct guest_regs *regs);

/* False when `from` is not canonical, not mapped, or its tables or its page are not RAM. */
bool page_walk_translate(struct page_walk *walk, gva_t from, gpa_t *to);

/* The page, of any size, that maps an address. */
struct page_leaf {
	struct gva_range page;
	uint64_t gpa;              /* of its first byte */
	bool writable, executable; /* in kernel mode */
	bool user;                 /* in user mode, too, where it is of x86-64 */
	gpa_t entry_at;            /* of the table's entry, there */
	uint64_t entry;            /* which is this */
};

/* As page_walk_translate, with everything that the tables say; remembers nothing. */
bool page_walk_leaf(const struct page_walk *walk, gva_t from, struct page_leaf *leaf);

/* Where an address in the leaf's page is. */
static inline gpa_t page_leaf_gpa(const struct page_leaf *leaf, uint64_t gva)
{
	return (gpa_t){leaf->gpa + (gva - leaf->page.first)};
}

/*
 * Copies `bytes` from `from`; may cross pages. False, with `to` undefined, when any of it cannot be read, or is past
 * the last address.
 */
bool page_walk_read(struct page_walk *walk, gva_t from, void *to, size_t bytes);

/*
 * Reads from `from` to the end of its 4 KiB, so that a stack costs one read instead of one for each word. `buffer` has
 * to outlive the walk, which sees no later changes there. It goes without, if that cannot be read.
 */
#define PAGE_WALK_AHEAD_BYTES 4096u
void page_walk_read_ahead(struct page_walk *walk, gva_t from, uint8_t buffer[PAGE_WALK_AHEAD_BYTES]);

/* The same in guest memory even if there is a snapshot, which has stacks: for code, which stays as it is. */
bool page_walk_read_code(struct page_walk *walk, gva_t from, void *to, size_t bytes);

/* As page_walk_read, for addresses of the kernel: false in the lower half of the address space. */
static inline bool page_walk_read_kernel(struct page_walk *walk, gva_t from, void *to, size_t bytes)
{
	return from.value >> 63 && page_walk_read(walk, from, to, bytes);
}

#endif
