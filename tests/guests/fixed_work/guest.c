// SPDX-License-Identifier: BSD-2-Clause
/* The same work in every run, in three functions; how much of it hash_blocks does is the build's choice. */
#include "guests/guest.h"

#ifndef HASH_PERCENT
#define HASH_PERCENT 100
#endif
#define ROUNDS 60u /* so that a host that is slow for a while is slow for all three */
#define HASH_STEPS (15u * HASH_PERCENT)
#define SORT_STEPS 500u
#define COPY_STEPS 400u

static volatile uint32_t sink;

static __attribute__((noinline)) void hash_blocks(unsigned steps)
{
	uint32_t hash = 2166136261u;

	while (steps-- > 0)
		hash = (hash ^ steps) * 16777619u;
	sink = hash;
}

static __attribute__((noinline)) void sort_blocks(unsigned steps)
{
	while (steps-- > 0)
		sink = sink < steps ? steps : sink;
}

static __attribute__((noinline)) void copy_blocks(unsigned steps)
{
	static volatile uint32_t blocks[2][64];

	while (steps-- > 0)
		blocks[1][steps % 64] = blocks[0][steps % 64];
}

void guest_main(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		hash_blocks(HASH_STEPS);
		sort_blocks(SORT_STEPS);
		copy_blocks(COPY_STEPS);
	}
	power_off();
}
