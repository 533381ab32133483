// SPDX-License-Identifier: BSD-2-Clause
/*
 * Puts a kernel, its initramfs, its command line and the firmware tables it expects into guest memory, and says in
 * which state the boot processor starts there.
 *
 * Protocols: Linux's 64-bit boot protocol (Documentation/arch/x86/boot.rst, "64-bit BOOT PROTOCOL") and PVH
 * (xen/include/public/arch-x86/hvm/start_info.h).
 */
#ifndef VPROF_KVM_BOOT_H
#define VPROF_KVM_BOOT_H

#include <glib.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

#include "kvm/host/memory.h"
#include "lib/symbol/image.h"

#define BOOT_ERROR boot_error_quark()
GQuark boot_error_quark(void);
enum boot_error {
	BOOT_ERROR_MEMORY,   /* a segment or the initramfs does not fit into RAM; the message has both ranges */
	BOOT_ERROR_PROTOCOL, /* PVH asked for, and the image has no entry note */
	BOOT_ERROR_IO,       /* the initramfs cannot be read */
	BOOT_ERROR_RANGE,    /* command line too long, vCPUs out of range */
};

enum boot_protocol {
	BOOT_AUTO,  /* Linux kernels: BOOT_LINUX; others: PVH if they have the note, else BOOT_LINUX's register state */
	BOOT_LINUX, /* long mode, rsi = boot_params */
	BOOT_PVH,   /* 32-bit protected mode without paging, ebx = hvm_start_info */
};

#define BOOT_COMMAND_LINE_BYTES_MAX 2048u /* with the NUL: COMMAND_LINE_SIZE of x86 Linux */

struct boot_config {
	const struct image *image;
	const char *initrd_path;  /* NULL: none */
	const char *command_line; /* UTF-8, without host quirks' additions or with: as the guest shall see it */
	unsigned vcpus;
	unsigned n_virtio; /* 0..BOOT_VIRTIO_MAX; for the ACPI tables */
	enum boot_protocol protocol;
	/* A range the guest must not use (a host quirk's pages), page-aligned, below 640 KiB; bytes 0: none. */
	gpa_t reserved;
	uint64_t reserved_bytes;
};

struct boot_state {
	enum boot_protocol protocol; /* BOOT_LINUX or BOOT_PVH */
	uint64_t rip, rsp;
	uint64_t rsi; /* BOOT_LINUX: boot_params */
	uint64_t rbx; /* BOOT_PVH: hvm_start_info */
	uint64_t cr3; /* BOOT_LINUX: identity map of the first 4 GiB in 2 MiB pages */
	uint64_t gdt_base;
	uint16_t gdt_limit;
};

/*
 * Fills the memory, which is fresh from memory_new, and *state. What is where: boot_layout.h; a kernel segment that
 * covers one of these places is refused. Errors: BOOT_ERROR.
 */
bool boot_load(const struct memory *memory, const struct boot_config *config, struct boot_state *state, GError **error);

/* The registers of the boot processor; *sregs comes from KVM_GET_SREGS and keeps what the protocol leaves open. */
void boot_registers(const struct boot_state *state, struct kvm_regs *regs, struct kvm_sregs *sregs);

/* What the ACPI tables and the devices (vmm/kvm) must agree on. */
#define BOOT_ACPI_PM1A_EVENT_PORT 0x600u   /* 4 bytes: status, enable */
#define BOOT_ACPI_PM1A_CONTROL_PORT 0x604u /* 2 bytes; SLP_EN (bit 13) with SLP_TYP 5 << 10 powers off */
#define BOOT_ACPI_S5_SLEEP_TYPE 5u
#define BOOT_ACPI_RESET_PORT 0x64u /* the i8042 command port takes 0xfe */
#define BOOT_ACPI_SCI_IRQ 9u
#define BOOT_IOAPIC_GPA UINT64_C(0xfec00000)
#define BOOT_LAPIC_GPA UINT64_C(0xfee00000)

/* Virtio devices' registers, in the hole, and their interrupts: what a PC of ours leaves free of the ISA bus's. */
#define BOOT_VIRTIO_MAX 8u
#define BOOT_VIRTIO_BYTES 0x1000u
#define BOOT_VIRTIO_GPA(n) (0xd0010000u + (n)*BOOT_VIRTIO_BYTES)

static inline unsigned boot_virtio_irq(unsigned n)
{
	static const unsigned irqs[BOOT_VIRTIO_MAX] = {5, 6, 7, 10, 11, 12, 14, 15};
	return irqs[n];
}

#endif
