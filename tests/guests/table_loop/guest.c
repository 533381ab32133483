// SPDX-License-Identifier: BSD-2-Clause
/*
 * Computes with page tables of which an entry is the table itself, on a stack there, and with a frame that is its own
 * caller: what walks tables or frames comes by the same place again and again.
 */
#include "guests/guest.h"

#define PRESENT_WRITABLE 3ul
#define SELF 509ul /* of 512 entries: neither the kernel's nor the stack's */

void walk_here(uint64_t frame);

__attribute__((noinline)) void walk_here(uint64_t frame)
{
	/* With this frame pointer for ever. */
	__asm__ volatile("mov %0, %%rbp\n1:\tpause\n\tjmp 1b" : : "r"(frame) : "memory");
}

void guest_main(void)
{
	uint64_t cr3, *top, at;
	static uint64_t frame[2];

	console_print("table_loop: begins\n");
	__asm__ volatile("mov %%cr3, %0" : "=r"(cr3));
	top = (uint64_t *)(cr3 & ~0xffful);
	top[SELF] = (uint64_t)(uintptr_t)top | PRESENT_WRITABLE;
	/* The top table, by itself four times over; its last words are a frame. */
	at = 0xffff000000000000ul | SELF << 39 | SELF << 30 | SELF << 21 | SELF << 12;
	top[510] = at + 510 * 8;
	frame[0] = top[510];
	frame[1] = (uintptr_t)walk_here;
	walk_here((uintptr_t)frame);
}
