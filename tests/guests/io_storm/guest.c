// SPDX-License-Identifier: BSD-2-Clause
/* Reads and writes every port, register of a device, and MSR of its PMU, with every value, for ever. */
#include "guests/guest.h"

#define DEVICES_GPA 0xd0010000ul
#define DEVICES_BYTES 0x10000u
#define PM1_CONTROL_LAST (ACPI_PM1A_CONTROL_PORT + 1)

static const uint32_t msrs[] = {0xc1, 0xc2, 0x186, 0x187, 0x309, 0x38d, 0x38f, 0x390};

static void ports(uint8_t value)
{
	for (uint32_t port = 0; port < 0x10000; port++) {
		/* These end the guest. */
		if (port == EXIT_PORT || port == I8042_COMMAND_PORT ||
		    (port >= ACPI_PM1A_CONTROL_PORT - 1 && port <= PM1_CONTROL_LAST))
			continue;
		/* And what it prints is read by a test. */
		if (port >= 0x3f8 && port < 0x400)
			continue;
		outb((uint16_t)port, value);
		inb((uint16_t)port);
	}
}

static void registers(uint32_t value)
{
	for (uint32_t at = 0; at < DEVICES_BYTES; at += 4) {
		*(volatile uint32_t *)(DEVICES_GPA + at) = value + at;
		*(volatile uint32_t *)(DEVICES_GPA + at);
		*(volatile uint8_t *)(DEVICES_GPA + at + 3) = (uint8_t)value;
		*(volatile uint64_t *)(DEVICES_GPA + at) = ~(uint64_t)value;
	}
}

void guest_main(void)
{
	console_print("io_storm: begins\n");
	for (uint32_t round = 0;; round++) {
		for (unsigned i = 0; i < 1000; i++) {
			const uint32_t msr = msrs[i % (sizeof msrs / sizeof *msrs)];

			wrmsr(msr, rdmsr(msr) & 0xffff);
		}
		for (unsigned i = 0; i < 1000; i++)
			outb(PHASE_PORT, (uint8_t)i);
		registers(round * 0x10001);
		ports((uint8_t)round);
	}
}
