// SPDX-License-Identifier: BSD-2-Clause
/* For ever: TIMES accesses to a port, and TIMES calls of called(), with a phase before each and one behind. */
#include "guests/guest.h"

#define TIMES 2000u
#define TEST_PORT 0x510u

void called(unsigned i);

__attribute__((noinline)) void called(unsigned i)
{
	__asm__ volatile("nop" : : "r"(i));
}

void guest_main(void)
{
	for (;;) {
		outb(PHASE_PORT, 1);
		for (unsigned i = 0; i < TIMES; i++)
			outb(TEST_PORT, (uint8_t)i);
		outb(PHASE_PORT, 2);
		for (unsigned i = 0; i < TIMES; i++)
			called(i);
		outb(PHASE_PORT, 3);
	}
}
