// SPDX-License-Identifier: BSD-2-Clause
/* Layouts and constants of the ACPI tables we write. Sections are those of the ACPI specification, 6.5. */
#ifndef VPROF_KVM_BOOT_X86_ACPI_PRIV_H
#define VPROF_KVM_BOOT_X86_ACPI_PRIV_H

#include <stddef.h>
#include <stdint.h>

/* Section 5.2.5.3. */
struct acpi_rsdp {
	char signature[8];
	uint8_t checksum; /* of the first 20 bytes: ACPI 1.0's RSDP */
	char oem_id[6];
	uint8_t revision;
	uint32_t rsdt_gpa;
	uint32_t bytes;
	uint64_t xsdt_gpa;
	uint8_t extended_checksum;
	uint8_t reserved[3];
} __attribute__((packed));
_Static_assert(sizeof(struct acpi_rsdp) == 36 && offsetof(struct acpi_rsdp, bytes) == 20, "ACPI 6.5, 5.2.5.3");

/* Section 5.2.6. */
struct acpi_header {
	char signature[4];
	uint32_t bytes;
	uint8_t revision;
	uint8_t checksum;
	char oem_id[6];
	char oem_table_id[8];
	uint32_t oem_revision;
	char creator_id[4];
	uint32_t creator_revision;
} __attribute__((packed));
_Static_assert(sizeof(struct acpi_header) == 36, "ACPI 6.5, 5.2.6");

struct acpi_xsdt {
	struct acpi_header header;
	uint64_t table_gpa[2];
} __attribute__((packed));

/* Section 5.2.10. */
struct acpi_facs {
	char signature[4];
	uint32_t bytes;
	uint32_t hardware_signature;
	uint32_t waking_vector;
	uint32_t global_lock;
	uint32_t flags;
	uint64_t x_waking_vector;
	uint8_t version;
	uint8_t reserved[31];
} __attribute__((packed));
_Static_assert(sizeof(struct acpi_facs) == 64, "ACPI 6.5, 5.2.10");

/* Section 5.2.3.2. */
struct acpi_generic_address {
	uint8_t space;
	uint8_t bits;
	uint8_t bit_offset;
	uint8_t access;
	uint64_t address;
} __attribute__((packed));

enum { ACPI_SPACE_SYSTEM_IO = 1, ACPI_ACCESS_BYTE = 1 };

/* Section 5.2.9. */
struct acpi_fadt {
	struct acpi_header header;
	uint32_t facs_gpa;
	uint32_t dsdt_gpa;
	uint8_t reserved0;
	uint8_t pm_profile;
	uint16_t sci_irq;
	uint32_t smi_command_port;
	uint8_t acpi_enable;
	uint8_t acpi_disable;
	uint8_t s4bios_request;
	uint8_t pstate_control;
	uint32_t pm1a_event_port;
	uint32_t pm1b_event_port;
	uint32_t pm1a_control_port;
	uint32_t pm1b_control_port;
	uint32_t pm2_control_port;
	uint32_t pm_timer_port;
	uint32_t gpe0_port;
	uint32_t gpe1_port;
	uint8_t pm1_event_bytes;
	uint8_t pm1_control_bytes;
	uint8_t pm2_control_bytes;
	uint8_t pm_timer_bytes;
	uint8_t gpe0_bytes;
	uint8_t gpe1_bytes;
	uint8_t gpe1_base;
	uint8_t cstate_control;
	uint16_t c2_latency_us;
	uint16_t c3_latency_us;
	uint16_t flush_size;
	uint16_t flush_stride;
	uint8_t duty_offset;
	uint8_t duty_width;
	uint8_t day_alarm;
	uint8_t month_alarm;
	uint8_t century;
	uint16_t boot_architecture;
	uint8_t reserved1;
	uint32_t flags;
	struct acpi_generic_address reset_register;
	uint8_t reset_value;
	uint16_t arm_boot_architecture;
	uint8_t minor_revision;
	uint64_t x_facs_gpa;
	uint64_t x_dsdt_gpa;
	struct acpi_generic_address x_blocks[8]; /* zero: the 32-bit ports above are in force */
	struct acpi_generic_address sleep_control;
	struct acpi_generic_address sleep_status;
	uint64_t hypervisor_vendor;
} __attribute__((packed));
_Static_assert(sizeof(struct acpi_fadt) == 276 && offsetof(struct acpi_fadt, flags) == 112, "ACPI 6.5, 5.2.9");

/* Latencies above 100 and 1000 us say that there is no C2 and no C3. */
enum { ACPI_NO_C2_LATENCY_US = 101, ACPI_NO_C3_LATENCY_US = 1001 };

/* IAPC_BOOT_ARCH, section 5.2.9.3. Bit 1, a keyboard controller, is clear: port 0x64 only resets. */
enum { ACPI_BOOT_LEGACY_DEVICES = 1 << 0, ACPI_BOOT_NO_VGA = 1 << 2, ACPI_BOOT_NO_CMOS_RTC = 1 << 5 };

/* Table 5.10; the buttons' and the clock's bits say that fixed hardware has none. */
enum {
	ACPI_FLAG_WBINVD = 1 << 0,
	ACPI_FLAG_C1_SUPPORTED = 1 << 2,
	ACPI_FLAG_NO_FIXED_POWER_BUTTON = 1 << 4,
	ACPI_FLAG_NO_FIXED_SLEEP_BUTTON = 1 << 5,
	ACPI_FLAG_NO_FIXED_RTC_WAKE = 1 << 6,
	ACPI_FLAG_RESET_REGISTER = 1 << 10,
	ACPI_FLAG_HEADLESS = 1 << 12,
};

/* Section 5.2.12 and its subsections. */
struct acpi_madt {
	struct acpi_header header;
	uint32_t lapic_gpa;
	uint32_t flags;
} __attribute__((packed));

enum { ACPI_MADT_PCAT_COMPATIBLE = 1, ACPI_MADT_LAPIC_ENABLED = 1 };
enum { ACPI_MADT_LAPIC = 0, ACPI_MADT_IOAPIC = 1, ACPI_MADT_INTERRUPT_OVERRIDE = 2, ACPI_MADT_LAPIC_NMI = 4 };
enum { ACPI_MADT_ACTIVE_HIGH_LEVEL = 1 | 3 << 2 };

struct acpi_madt_lapic {
	uint8_t type;
	uint8_t bytes;
	uint8_t processor_uid;
	uint8_t apic_id;
	uint32_t flags;
} __attribute__((packed));

struct acpi_madt_ioapic {
	uint8_t type;
	uint8_t bytes;
	uint8_t id;
	uint8_t reserved;
	uint32_t gpa;
	uint32_t gsi_base;
} __attribute__((packed));

struct acpi_madt_override {
	uint8_t type;
	uint8_t bytes;
	uint8_t bus;
	uint8_t irq;
	uint32_t gsi;
	uint16_t flags;
} __attribute__((packed));

struct acpi_madt_lapic_nmi {
	uint8_t type;
	uint8_t bytes;
	uint8_t processor_uid;
	uint16_t flags;
	uint8_t lint;
} __attribute__((packed));

#endif
