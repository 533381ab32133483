// SPDX-License-Identifier: BSD-2-Clause
/* What the guests of the tests share. Each is one function, called in long mode on vCPU 0 with interrupts off. */
#ifndef VPROF_TEST_GUESTS_GUEST_H
#define VPROF_TEST_GUESTS_GUEST_H

#include "demo/console.h"
#include "demo/x86/x86.h"

#define EXIT_PORT 0xf4
#define PHASE_PORT 0x80
#define ACPI_PM1A_CONTROL_PORT 0x604
#define ACPI_POWER_OFF 0x3400 /* SLP_EN, SLP_TYP 5 */
#define I8042_COMMAND_PORT 0x64
#define I8042_RESET 0xfe

/* Returning halts for ever. */
void guest_main(void);

static inline void power_off(void)
{
	outw(ACPI_PM1A_CONTROL_PORT, ACPI_POWER_OFF);
	halt();
}

#endif
