// SPDX-License-Identifier: BSD-2-Clause
/* Leaves the guest a known number of times for each of some reasons, then halts for ever (tests/kvm/exits.py). */
#include "guests/guest.h"
#include "guests/timer.h"

#define CPUIDS 4000
#define READS 500
#define MMIO_READS 300
#define HALTS 20
#define WRITES 700
#define READ_PORT 0x71                 /* the CMOS clock, which the VMM does not have */
#define WRITE_PORT 0xed                /* nothing */
#define READ_MMIO UINT64_C(0xd0001000) /* nothing */
#define HALT_TICKS (APIC_TICKS / 50)

void guest_main(void)
{
	for (int i = 0; i < CPUIDS; i++)
		cpuid(0);
	for (int i = 0; i < READS; i++)
		inb(READ_PORT);
	for (int i = 0; i < MMIO_READS; i++)
		(void)*(volatile uint32_t *)READ_MMIO;
	timer_init(APIC_ONE_SHOT);
	for (int i = 0; i < HALTS; i++) {
		timer_count(HALT_TICKS);
		timer_sleep();
	}
	for (int i = 0; i < WRITES; i++)
		outb(WRITE_PORT, 0);
	halt();
}
