// SPDX-License-Identifier: BSD-2-Clause
/* Has its handlers in a page of 1 GiB that is the last of the address space, so that its end is no address. */
#include "guests/high_half.h"

#define LARGE 0x80ul
#define LAST_PAGE 0xffffffffc0000000ul

static struct high_half half;

void spin_here(void);

__attribute__((noinline)) void spin_here(void)
{
	for (;;)
		__asm__ volatile("pause");
}

void guest_main(void)
{
	half.table[ENTRIES - 1] = LARGE | PRESENT_WRITABLE;
	high_half_enter(&half, LAST_PAGE + (uintptr_t)spin_here);
	console_print("top_page: begins\n");
	spin_here();
}
