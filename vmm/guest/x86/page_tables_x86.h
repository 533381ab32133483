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

/* page_walk_init_regs with these. `la57`: five levels. */
void page_walk_init(struct page_walk *walk, struct guest *guest, uint64_t cr3, bool la57);

#endif
