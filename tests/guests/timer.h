// SPDX-License-Identifier: BSD-2-Clause
/* The local APIC's timer and its interrupt, for a guest that sleeps. To be included once. */
#ifndef VPROF_TEST_GUESTS_TIMER_H
#define VPROF_TEST_GUESTS_TIMER_H

#include "demo/x86/descriptors.h"
#include "guests/apic.h"

#define CODE_SELECTOR 0x10u
#define VECTOR_TIMER 0x20u

#define APIC_TICKS 1000000000u /* of the bus clock in a second, 1 GHz under KVM */

extern const uint8_t stub_timer[];
volatile uint32_t ticks;
static struct idt_gate idt[VECTOR_TIMER + 1];

__asm__("stub_timer:\n"
        "	incl ticks(%rip)\n"
        "	push %rax\n"
        "	mov $0xfee000b0, %eax\n" /* end of interrupt */
        "	movl $0, (%rax)\n"
        "	pop %rax\n"
        "	iretq\n");

/* mode: APIC_ONE_SHOT or APIC_PERIODIC. It begins with the count. */
static inline void timer_init(uint32_t mode)
{
	const struct table_pointer idtr = {.limit = sizeof idt - 1, .base = (uint64_t)idt};

	idt[VECTOR_TIMER] = idt_gate_to(stub_timer, CODE_SELECTOR);
	__asm__ volatile("lidt %0" : : "m"(idtr) : "memory");
	APIC(APIC_SPURIOUS) = APIC_ENABLE;
	APIC(APIC_DIVIDE) = 0xb; /* by 1 */
	APIC(APIC_LVT_TIMER) = mode | VECTOR_TIMER;
}

static inline void timer_count(uint32_t count)
{
	APIC(APIC_INITIAL_COUNT) = count;
}

/* STI takes effect behind HLT, so that no tick comes between the two. */
static inline void timer_sleep(void)
{
	__asm__ volatile("sti; hlt; cli" : : : "memory");
}

static inline void timer_compute_until(uint32_t tick)
{
	__asm__ volatile("sti" : : : "memory");
	while (ticks < tick)
		__asm__ volatile("" : : : "memory");
	__asm__ volatile("cli" : : : "memory");
}

#endif
