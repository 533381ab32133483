// SPDX-License-Identifier: BSD-2-Clause
/* Leaves the guest a known number of times for each of three reasons, then halts for ever (tests/kvm/exits.py). */
#include "guests/guest.h"

#define CPUIDS 4000
#define READS 3000
#define WRITES 2000
#define READ_PORT 0x71  /* the CMOS clock, which the VMM does not have */
#define WRITE_PORT 0xed /* nothing */

void guest_main(void)
{
	for (int i = 0; i < CPUIDS; i++)
		cpuid(0);
	for (int i = 0; i < READS; i++)
		inb(READ_PORT);
	for (int i = 0; i < WRITES; i++)
		outb(WRITE_PORT, 0);
	halt();
}
