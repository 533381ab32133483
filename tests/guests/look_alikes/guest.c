// SPDX-License-Identifier: BSD-2-Clause
/*
 * Maps five pages of digits, as kallsyms has them, over and over into 64 MiB where Linux is, and moves its handler
 * all the time, so that there is always something new to search.
 */
#include "guests/high_half.h"

#define KERNEL 0xffffffff80000000ul
#define TABLES 32u
#define PAGES 5u /* a multiple of the 20 bytes of ten digits */
#define MAPPED_BYTES (TABLES * ENTRIES * PAGE_BYTES)

static struct high_half half;
static __attribute__((aligned(PAGE_BYTES))) uint64_t middle[ENTRIES], tables[TABLES][ENTRIES];
static __attribute__((aligned(PAGE_BYTES))) uint8_t digits[PAGES * PAGE_BYTES];

void move_here(void);

__attribute__((noinline)) void move_here(void)
{
	for (uint64_t at = 0;; at = (at + 16) % MAPPED_BYTES)
		high_half_gate(&half, 0, KERNEL + at);
}

void guest_main(void)
{
	for (unsigned i = 0; i < sizeof(digits); i += 2)
		digits[i] = (uint8_t)('0' + i / 2 % 10);
	for (unsigned i = 0, page = 0; i < TABLES * ENTRIES; i++, page = (page + 1) % PAGES)
		tables[i / ENTRIES][i % ENTRIES] = (uintptr_t)&digits[page * PAGE_BYTES] | PRESENT_WRITABLE;
	for (unsigned i = 0; i < TABLES; i++)
		middle[i] = (uintptr_t)tables[i] | PRESENT_WRITABLE;
	half.table[ENTRIES - 2] = (uintptr_t)middle | PRESENT_WRITABLE;
	high_half_enter(&half, KERNEL);
	console_print("look_alikes: begins\n");
	move_here();
}
