// SPDX-License-Identifier: BSD-2-Clause
/* Page tables of x86-64. */
#ifndef VPROF_GUEST_X86_PAGE_TABLES_X86_H
#define VPROF_GUEST_X86_PAGE_TABLES_X86_H

#include "guest/page_walk.h"

/*
 * With page table isolation, a process has two top-level tables side by side; the user's, which lacks the kernel's
 * data, has this bit set (PTI_USER_PGTABLE_BIT of asm/pgtable.h).
 */
#define CR3_USER_TABLES (UINT64_C(1) << 12)

/* Of an entry (SDM Vol. 3A, tables 4-14 to 4-20). */
#define ENTRY_PRESENT (UINT64_C(1) << 0)
#define ENTRY_PAGE_SIZE (UINT64_C(1) << 7)
#define ENTRY_ADDRESS UINT64_C(0x000ffffffffff000)

/* page_walk_init_regs with these. `la57`: five levels. */
void page_walk_init(struct page_walk *walk, struct guest *guest, uint64_t cr3, bool la57);

#endif
