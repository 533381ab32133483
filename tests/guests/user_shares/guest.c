// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stays in user mode for ever: three quarters of the time in three_quarters, one quarter in one_quarter, both called by
 * user_main. It runs on any hypervisor, and makes no exit.
 */
#include <stdint.h>

#include "guests/guest.h"

#define ITERATIONS 100000u
#define USER_DS 0x1bu
#define USER_CS 0x23u
#define RFLAGS_FIXED 0x2u /* interrupts stay off */
#define PTE_USER UINT64_C(0x4)
#define STACK_BYTES 4096u

static uint64_t gdt[] = {0, UINT64_C(0x00af9b000000ffff), UINT64_C(0x00cf93000000ffff), UINT64_C(0x00cff3000000ffff),
                         UINT64_C(0x00affb000000ffff)};
static uint8_t user_stack[STACK_BYTES] __attribute__((aligned(16)));

uint64_t rounds; /* how often user_main has called both; read from outside */

void three_quarters(void);
void one_quarter(void);
void user_main(void);

static inline void spin(unsigned iterations)
{
	/* The input gives a function that calls nothing a frame, too: a chain of frame pointers begins with it. */
	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(iterations) : "r"(__builtin_frame_address(0)) : "cc");
}

__attribute__((noinline)) void three_quarters(void)
{
	spin(3 * ITERATIONS);
}

__attribute__((noinline)) void one_quarter(void)
{
	spin(ITERATIONS);
}

__attribute__((noinline)) void user_main(void)
{
	for (;;) {
		three_quarters();
		one_quarter();
		__atomic_store_n(&rounds, rounds + 1, __ATOMIC_RELAXED);
	}
}

/* The first 2 MiB, where all of this lies, for user mode, too. */
static void map_for_user(void)
{
	uint64_t *table;

	__asm__ volatile("mov %%cr3, %0" : "=r"(table));
	for (unsigned level = 4; level >= 2; level--) {
		table[0] |= PTE_USER;
		table = (uint64_t *)(table[0] & UINT64_C(0x000ffffffffff000));
	}
	__asm__ volatile("mov %%cr3, %%rax; mov %%rax, %%cr3" : : : "rax", "memory");
}

void guest_main(void)
{
	const struct __attribute__((packed)) {
		uint16_t limit;
		uint64_t base;
	} gdtr = {sizeof(gdt) - 1, (uint64_t)gdt};

	console_print("user_shares: 75 % three_quarters, 25 % one_quarter\n");
	map_for_user();
	/* A frame for user_main to return to, with which a chain ends. */
	*(uint64_t *)(void *)(user_stack + STACK_BYTES - 8) = 0;
	__asm__ volatile("lgdt %0; pushq %1; pushq %2; pushq %3; pushq %4; pushq %5; xor %%ebp, %%ebp; iretq"
	                 :
	                 : "m"(gdtr), "i"(USER_DS), "r"(user_stack + STACK_BYTES - 8), "i"(RFLAGS_FIXED), "i"(USER_CS),
	                   "r"((uint64_t)user_main)
	                 : "memory");
}
