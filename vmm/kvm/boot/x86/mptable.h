// SPDX-License-Identifier: BSD-2-Clause
/*
 * The Intel MultiProcessor Specification's table (version 1.4), for kernels without ACPI: processors, the IOAPIC and
 * the ISA interrupts, wired as KVM's in-kernel interrupt controllers have them.
 */
#ifndef VPROF_KVM_BOOT_X86_MPTABLE_H
#define VPROF_KVM_BOOT_X86_MPTABLE_H

#include "guest/guest.h"

#define MPTABLE_BYTES_MAX 4096u

/*
 * Writes the floating pointer and the table to `to`, MPTABLE_BYTES_MAX bytes of fresh memory that the guest sees at
 * `at`. vcpus: 1..GUEST_VCPUS_MAX, with APIC ids from 0.
 */
void mptable_write(void *to, gpa_t at, unsigned vcpus);

#endif
