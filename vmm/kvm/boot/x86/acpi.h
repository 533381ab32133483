// SPDX-License-Identifier: BSD-2-Clause
/*
 * ACPI tables (ACPI specification 6.5, chapter 5): RSDP, XSDT, FADT, FACS, DSDT and MADT of a machine with processors,
 * an IOAPIC, PICs and a PIT as KVM emulates them, two UARTs, virtio devices, a reset port and power-off. The tables say
 * that there is no PM timer, real-time clock, keyboard controller or VGA, so that a kernel does not probe for them.
 */
#ifndef VPROF_KVM_BOOT_X86_ACPI_H
#define VPROF_KVM_BOOT_X86_ACPI_H

#include "guest/guest.h"

#define ACPI_BYTES_MAX 4096u

/*
 * Writes the tables to `to`, ACPI_BYTES_MAX bytes of fresh memory that the guest sees at `at` (page-aligned). The RSDP
 * comes first. vcpus: 1..GUEST_VCPUS_MAX, with APIC ids from 0. n_virtio: 0..BOOT_VIRTIO_MAX.
 */
void acpi_write(void *to, gpa_t at, unsigned vcpus, unsigned n_virtio);

#endif
