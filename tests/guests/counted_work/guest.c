// SPDX-License-Identifier: BSD-2-Clause
/* Three times the same two phases, each with a function of countable instructions. */
#include "guests/guest.h"

#ifndef SORT_PERCENT
#define SORT_PERCENT 100
#endif
#define HASH_TURNS 200u
#define SORT_TURNS (4u * SORT_PERCENT)
#define PHASE_HASH 0x10
#define PHASE_SORT 0x20
#define PHASE_REST 0x30

/* Read when it runs, so that the functions stay as they are written. */
static volatile unsigned hash_turns = HASH_TURNS, sort_turns = SORT_TURNS;

/* Two instructions a turn, and RET. */
static __attribute__((noinline)) void hash_blocks(unsigned turns)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns));
}

static __attribute__((noinline)) void sort_blocks(unsigned turns)
{
	__asm__ volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(turns));
}

void guest_main(void)
{
	for (unsigned i = 0; i < 3; i++) {
		outb(PHASE_PORT, PHASE_HASH);
		hash_blocks(hash_turns);
		outb(PHASE_PORT, PHASE_SORT);
		sort_blocks(sort_turns);
		outb(PHASE_PORT, PHASE_REST);
	}
	power_off();
}
