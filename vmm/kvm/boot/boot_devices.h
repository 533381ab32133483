// SPDX-License-Identifier: BSD-2-Clause
/* Where the devices are: the tables that a guest reads and the devices themselves must agree. */
#ifndef VPROF_KVM_BOOT_BOOT_DEVICES_H
#define VPROF_KVM_BOOT_BOOT_DEVICES_H

#include <stdint.h>

#define BOOT_ACPI_PM1A_EVENT_PORT 0x600u   /* 4 bytes: status, enable */
#define BOOT_ACPI_PM1A_CONTROL_PORT 0x604u /* 2 bytes; SLP_EN (bit 13) with SLP_TYP 5 << 10 powers off */
#define BOOT_ACPI_S5_SLEEP_TYPE 5u
#define BOOT_ACPI_RESET_PORT 0x64u /* the i8042 command port takes 0xfe */
#define BOOT_ACPI_SCI_IRQ 9u
#define BOOT_IOAPIC_GPA UINT64_C(0xfec00000)
#define BOOT_LAPIC_GPA UINT64_C(0xfee00000)

/* The registers of virtio devices, in the hole below 4 GiB, and their interrupts: the ISA interrupts that are free. */
#define BOOT_VIRTIO_MAX 8u
#define BOOT_VIRTIO_BYTES 0x1000u
#define BOOT_VIRTIO_GPA(n) (0xd0010000u + (n)*BOOT_VIRTIO_BYTES)

static inline unsigned boot_virtio_irq(unsigned n)
{
	static const unsigned irqs[BOOT_VIRTIO_MAX] = {5, 6, 7, 10, 11, 12, 14, 15};
	return irqs[n];
}

#endif
