// SPDX-License-Identifier: BSD-2-Clause
/* Makes a guest look as if it had a kernel where Linux has it: in its page tables, and by its interrupt descriptors. */
#ifndef VPROF_TEST_GUESTS_HIGH_HALF_H
#define VPROF_TEST_GUESTS_HIGH_HALF_H

#include "guests/guest.h"

#define PRESENT_WRITABLE 3ul
#define GATES 32u
#define ENTRIES 512u
#define PAGE_BYTES 4096u
#define CODE_SELECTOR 0x10ul
#define INTERRUPT_GATE 0x8e00ul

struct high_half {
	__attribute__((aligned(PAGE_BYTES))) uint64_t table[ENTRIES]; /* of the last 512 GiB: an entry maps 1 GiB */
	uint64_t gates[GATES][2];                                     /* SDM Vol. 3A, figure 6-8 */
};

static inline void high_half_gate(struct high_half *half, unsigned gate, uint64_t handler)
{
	half->gates[gate][0] =
		(handler & 0xffff) | CODE_SELECTOR << 16 | INTERRUPT_GATE << 32 | (handler >> 16 & 0xffff) << 48;
	half->gates[gate][1] = handler >> 32;
}

/* After half->table is filled. All gates lead to `handler`. */
static inline void high_half_enter(struct high_half *half, uint64_t handler)
{
	const struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) pointer = {sizeof(half->gates) - 1, (uintptr_t)half->gates};
	uint64_t cr3;

	for (unsigned i = 0; i < GATES; i++)
		high_half_gate(half, i, handler);
	__asm__ volatile("mov %%cr3, %0" : "=r"(cr3));
	((uint64_t *)(cr3 & ~0xffful))[ENTRIES - 1] = (uintptr_t)half->table | PRESENT_WRITABLE;
	__asm__ volatile("mov %0, %%cr3; lidt %1" : : "r"(cr3), "m"(pointer) : "memory");
}

#endif
