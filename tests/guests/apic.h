// SPDX-License-Identifier: BSD-2-Clause
/* Registers of the local APIC (SDM volume 3, "Advanced Programmable Interrupt Controller"), and the start of vCPU 1. */
#ifndef VPROF_TEST_GUESTS_APIC_H
#define VPROF_TEST_GUESTS_APIC_H

#include <stdint.h>

#define APIC(offset) (*(volatile uint32_t *)(UINT64_C(0xfee00000) + (offset)))
#define APIC_EOI 0xb0u
#define APIC_SPURIOUS 0xf0u
#define APIC_ENABLE 0x1ffu
#define APIC_COMMAND_LOW 0x300u
#define APIC_COMMAND_HIGH 0x310u
#define APIC_ID(n) ((uint32_t)(n) << 24)
#define APIC_INIT 0x4500u
#define APIC_STARTUP 0x4600u
#define APIC_LVT_TIMER 0x320u
#define APIC_ONE_SHOT 0u
#define APIC_PERIODIC (1u << 17)
#define APIC_INITIAL_COUNT 0x380u
#define APIC_DIVIDE 0x3e0u

#define STARTUP_PAGE 8u
#define STARTUP_CODE ((volatile uint8_t *)(uint64_t)(STARTUP_PAGE << 12))

/* vCPU 1 runs what is at STARTUP_CODE, in real mode. */
static inline void second_cpu_start(void)
{
	APIC(APIC_SPURIOUS) = APIC_ENABLE;
	APIC(APIC_COMMAND_HIGH) = APIC_ID(1);
	APIC(APIC_COMMAND_LOW) = APIC_INIT;
	APIC(APIC_COMMAND_HIGH) = APIC_ID(1);
	APIC(APIC_COMMAND_LOW) = APIC_STARTUP | STARTUP_PAGE;
}

#endif
