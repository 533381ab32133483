// SPDX-License-Identifier: BSD-2-Clause
/* What the assembly and the kernel agree on. */
#ifndef VPROF_DEMO_ARM64_LAYOUT_H
#define VPROF_DEMO_ARM64_LAYOUT_H

/*
 * The kernel is loaded to 2 MiB and, as Linux, runs in the upper half of the address space, where it sees the first
 * 4 GiB of physical memory; the program is at 4 MiB, mapped one to one.
 */
#define KERNEL_BASE 0xffff800080000000
#define USER_BASE 0x400000

#ifndef __ASSEMBLER__

#include <stdint.h>

/* Guest physical memory, as the kernel sees it. */
static inline void *physical(uint64_t gpa)
{
	return (void *)(KERNEL_BASE + gpa);
}

#endif
#endif
