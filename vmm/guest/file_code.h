// SPDX-License-Identifier: BSD-2-Clause
/*
 * An instruction in a file of the guest: for a breakpoint that all processes have which execute the file
 * (guest_debug.h). The guest may move the page, drop it and read it again, write to it, and give a process a copy of
 * its own; so it is looked for each time anew, by inode and index (struct os_file_code).
 */
#ifndef VPROF_GUEST_FILE_CODE_H
#define VPROF_GUEST_FILE_CODE_H

#include "guest/page_walk.h"

struct os_kernel;

#define FILE_CODE_BYTES 16u /* of the longest instruction, or more */

struct file_code {
	const struct os_kernel *kernel; /* borrowed */
	uint64_t mapping;               /* address of what the system has of the file's pages */
	uint64_t inode, number, super;  /* address and number of its inode, and of its file system */
	bool is_kept;                   /* the file's pages are written to a disk */
	uint64_t offset;                /* in the file; the instruction is all in one page */
	uint8_t code[FILE_CODE_BYTES];  /* [n] the instruction as the file has it */
	size_t n;
};

/* A page of a file in the guest's memory. */
enum page_state {
	PAGE_ABSENT, /* not in memory */
	PAGE_BUSY,   /* being read or written, or it has gone meanwhile */
	PAGE_DIRTY,  /* it is to be written */
	PAGE_CLEAN,
};

/* By the kernel's tables, of which those of the vCPU with these registers have a part. */
void file_code_walk(struct guest *guest, const struct guest_regs *regs, struct page_walk *walk);

/* Whether both are the same instruction in the same place of the same file. */
bool file_code_equal(const struct file_code *a, const struct file_code *b);

#endif
