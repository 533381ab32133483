// SPDX-License-Identifier: BSD-2-Clause
/* Starts vCPU 1, which computes in real mode for ever, and sleeps. */
#include "guests/guest.h"
#include "guests/apic.h"

#define JUMP_TO_ITSELF 0xfeeb

void guest_main(void)
{
	*(volatile uint16_t *)STARTUP_CODE = JUMP_TO_ITSELF;
	second_cpu_start();
	halt();
}
