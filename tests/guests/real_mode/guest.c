// SPDX-License-Identifier: BSD-2-Clause
/* Starts vCPU 1, which computes in real mode for ever, and sleeps. */
#include "guests/guest.h"

#define APIC(offset) (*(volatile uint32_t *)(UINT64_C(0xfee00000) + (offset)))
#define APIC_SPURIOUS 0xf0
#define APIC_ENABLED 0x1ff
#define APIC_COMMAND_LOW 0x300
#define APIC_COMMAND_HIGH 0x310
#define APIC_ID(n) ((uint32_t)(n) << 24)
#define APIC_INIT 0x4500
#define APIC_STARTUP 0x4600
#define STARTUP_PAGE 8u
#define JUMP_TO_ITSELF 0xfeeb

void guest_main(void)
{
	*(volatile uint16_t *)(uint64_t)(STARTUP_PAGE << 12) = JUMP_TO_ITSELF;
	APIC(APIC_SPURIOUS) = APIC_ENABLED;
	APIC(APIC_COMMAND_HIGH) = APIC_ID(1);
	APIC(APIC_COMMAND_LOW) = APIC_INIT;
	APIC(APIC_COMMAND_HIGH) = APIC_ID(1);
	APIC(APIC_COMMAND_LOW) = APIC_STARTUP | STARTUP_PAGE;
	halt();
}
