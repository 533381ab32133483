// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls a function ROUNDS times, and steps over an instruction of its own after each. The second and the first byte of
 * DR6, as its handler of debug exceptions finds it, go to port 0x80. Then it powers off.
 */
#include "guests/guest.h"
#include "demo/x86/descriptors.h"

#define ROUNDS 3u
#define CODE_SELECTOR 0x10u
#define VECTOR_DEBUG 1u
#define DR6_FIXED UINT64_C(0xffff0ff0)

extern const uint8_t stub_debug[];
volatile uint64_t seen;
static struct idt_gate idt[VECTOR_DEBUG + 1];

void probed(void);

/* Clears TF in what IRETQ takes back. */
__asm__("stub_debug:\n"
        "	push %rax\n"
        "	mov %dr6, %rax\n"
        "	mov %rax, seen(%rip)\n"
        "	andl $~0x100, 24(%rsp)\n"
        "	pop %rax\n"
        "	iretq\n");

__attribute__((noinline)) void probed(void)
{
	__asm__ volatile("nop" : : : "memory");
}

void guest_main(void)
{
	const struct table_pointer idtr = {.limit = sizeof idt - 1, .base = (uint64_t)idt};

	idt[VECTOR_DEBUG] = idt_gate_to(stub_debug, CODE_SELECTOR);
	__asm__ volatile("lidt %0" : : "m"(idtr) : "memory");
	for (unsigned round = 0; round < ROUNDS; round++) {
		__asm__ volatile("mov %0, %%dr6" : : "r"(DR6_FIXED));
		probed();
		__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq; nop" : : : "memory", "cc");
		outb(PHASE_PORT, (uint8_t)(seen >> 8));
		outb(PHASE_PORT, (uint8_t)seen);
	}
	power_off();
}
