// SPDX-License-Identifier: BSD-2-Clause
/* Members of linux_x86 (linux/processor.h) that deal with what the kernel saves of registers. */
#ifndef VPROF_LINUX_X86_LINUX_X86_H
#define VPROF_LINUX_X86_LINUX_X86_H

#include "linux/processor.h"

bool linux_x86_entered(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                       enum step *step, enum unwind_end *end);
bool linux_x86_from_switch(struct page_walk *memory, const struct listed_task *task, uint64_t fork_return,
                           struct frame *frame);
bool linux_x86_call_read(struct page_walk *walk, uint64_t at, struct os_call *call);
bool linux_x86_futex_read(struct page_walk *walk, uint64_t regs_end, struct os_call *call);

#endif
