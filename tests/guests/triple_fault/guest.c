// SPDX-License-Identifier: BSD-2-Clause
#include "guests/guest.h"

void fault_here(void);

/* Without an IDT the first exception is the last. */
__attribute__((noinline)) void fault_here(void)
{
	__asm__ volatile("ud2");
}

void guest_main(void)
{
	const struct __attribute__((packed)) {
		uint16_t limit;
		uint64_t base;
	} no_idt = {0, 0};
	console_print("triple_fault: the last line before the fault\n");
	__asm__ volatile("lidt %0" : : "m"(no_idt));
	fault_here();
}
