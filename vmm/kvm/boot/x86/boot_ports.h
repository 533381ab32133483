// SPDX-License-Identifier: BSD-2-Clause
/* The devices of a PC, where its ACPI tables say that they are. */
#ifndef VPROF_KVM_BOOT_X86_BOOT_PORTS_H
#define VPROF_KVM_BOOT_X86_BOOT_PORTS_H

#include <stdint.h>

#define BOOT_ACPI_PM1A_EVENT_PORT 0x600u   /* 4 bytes: status, enable */
#define BOOT_ACPI_PM1A_CONTROL_PORT 0x604u /* 2 bytes; SLP_EN (bit 13) with SLP_TYP 5 << 10 powers off */
#define BOOT_ACPI_S5_SLEEP_TYPE 5u
#define BOOT_ACPI_RESET_PORT 0x64u /* the i8042 command port takes 0xfe */
#define BOOT_ACPI_SCI_IRQ 9u
#define BOOT_IOAPIC_GPA UINT64_C(0xfec00000)
#define BOOT_LAPIC_GPA UINT64_C(0xfee00000)

#endif
