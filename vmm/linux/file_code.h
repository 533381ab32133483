// SPDX-License-Identifier: BSD-2-Clause
/*
 * An instruction in a file of a Linux guest: where it is in the page cache, for a breakpoint that all processes have
 * which execute the file (guest_debug.h). The guest may move the page, drop it and read it again, write to it, and give
 * a process a copy of its own; so it is looked for each time anew, by inode and index.
 */
#ifndef VPROF_LINUX_FILE_CODE_H
#define VPROF_LINUX_FILE_CODE_H

#include "linux/kernel.h"

/* Why the guest's files cannot be looked at so: a clause; NULL: they can. */
const char *file_code_why_not(const struct kernel_layout *kernel);

/*
 * Of the struct file at `file`; `walk`: of file_code_walk or the like, here and below. The code is not read yet. False
 * when that is not readable.
 */
bool file_code_open(struct file_code *self, const struct kernel_layout *kernel, struct page_walk *walk, uint64_t file,
                    uint64_t offset);
/*
 * Reads the instruction, without patches of ours. False: it is not in memory. `n` becomes 0 where there is none, or
 * where a page's end divides it.
 */
bool file_code_read(struct file_code *self, struct page_walk *walk);
/* Where its first byte is now. A page that is never written to a disk is clean. */
enum page_state file_code_find(const struct file_code *self, struct page_walk *walk, gpa_t *at);

/* Whether the task that the vCPU runs has it mapped at this address, in the file's page or in a copy of its own. */
bool file_code_is_mapped(const struct file_code *self, struct guest *guest, unsigned vcpu,
                         const struct guest_regs *regs, uint64_t address);

#endif
