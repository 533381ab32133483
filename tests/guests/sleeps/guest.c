// SPDX-License-Identifier: BSD-2-Clause
/* Halts for two ticks of a timer, a second each, computes for another, and powers off. */
#include "guests/guest.h"
#include "demo/x86/descriptors.h"

#define CODE_SELECTOR 0x10u
#define VECTOR_TIMER 0x20u
#define SLEEP_TICKS 2u

/* Local APIC (SDM volume 3, "Local Vector Table", "APIC Timer"). */
#define APIC(offset) (*(volatile uint32_t *)(UINT64_C(0xfee00000) + (offset)))
#define APIC_SPURIOUS 0xf0u
#define APIC_ENABLE 0x1ffu
#define APIC_LVT_TIMER 0x320u
#define APIC_PERIODIC (1u << 17)
#define APIC_INITIAL_COUNT 0x380u
#define APIC_DIVIDE 0x3e0u
#define APIC_TICKS 1000000000u /* of the bus clock, 1 GHz under KVM */

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

/* STI takes effect behind HLT, so that no tick comes between the two. */
static void sleep_until(uint32_t tick)
{
	while (ticks < tick)
		__asm__ volatile("sti; hlt; cli" : : : "memory");
}

static void compute_until(uint32_t tick)
{
	__asm__ volatile("sti" : : : "memory");
	while (ticks < tick)
		__asm__ volatile("" : : : "memory");
	__asm__ volatile("cli" : : : "memory");
}

void guest_main(void)
{
	const struct table_pointer idtr = {.limit = sizeof idt - 1, .base = (uint64_t)idt};

	idt[VECTOR_TIMER] = idt_gate_to(stub_timer, CODE_SELECTOR);
	__asm__ volatile("lidt %0" : : "m"(idtr) : "memory");
	APIC(APIC_SPURIOUS) = APIC_ENABLE;
	APIC(APIC_DIVIDE) = 0xb; /* by 1 */
	APIC(APIC_LVT_TIMER) = APIC_PERIODIC | VECTOR_TIMER;
	APIC(APIC_INITIAL_COUNT) = APIC_TICKS;
	sleep_until(SLEEP_TICKS);
	compute_until(SLEEP_TICKS + 1);
	power_off();
}
