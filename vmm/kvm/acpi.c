// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/acpi.h"

#include <stddef.h>
#include <string.h>

#include "kvm/boot.h"
#include "kvm/boot_layout.h"

#define OEM_ID                               \
	{                                    \
		'V', 'P', 'R', 'O', 'F', ' ' \
	}

/* Tables stand at fixed places in the page; the MADT, whose size depends on the vCPUs, is the last. */
enum {
	RSDP_OFFSET = 0,
	XSDT_OFFSET = 0x40,
	FACS_OFFSET = 0x80, /* "aligned on a 64-byte boundary" */
	FADT_OFFSET = 0xc0,
	DSDT_OFFSET = 0x200,
	MADT_OFFSET = 0x300,
};

/* Section 5.2.5.3. */
struct rsdp {
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
_Static_assert(sizeof(struct rsdp) == 36 && offsetof(struct rsdp, bytes) == 20, "ACPI 6.5, 5.2.5.3");

/* Section 5.2.6. */
struct header {
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
_Static_assert(sizeof(struct header) == 36, "ACPI 6.5, 5.2.6");

struct xsdt {
	struct header header;
	uint64_t table_gpa[2];
} __attribute__((packed));
_Static_assert(XSDT_OFFSET + sizeof(struct xsdt) <= FACS_OFFSET, "no overlap");

/* Section 5.2.10. */
struct facs {
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
_Static_assert(sizeof(struct facs) == 64, "ACPI 6.5, 5.2.10");

/* Section 5.2.3.2. */
struct generic_address {
	uint8_t space;
	uint8_t bits;
	uint8_t bit_offset;
	uint8_t access;
	uint64_t address;
} __attribute__((packed));

enum { SPACE_SYSTEM_IO = 1, ACCESS_BYTE = 1 };

/* Section 5.2.9. */
struct fadt {
	struct header header;
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
	struct generic_address reset_register;
	uint8_t reset_value;
	uint16_t arm_boot_architecture;
	uint8_t minor_revision;
	uint64_t x_facs_gpa;
	uint64_t x_dsdt_gpa;
	struct generic_address x_blocks[8]; /* zero: the 32-bit ports above are in force */
	struct generic_address sleep_control;
	struct generic_address sleep_status;
	uint64_t hypervisor_vendor;
} __attribute__((packed));
_Static_assert(sizeof(struct fadt) == 276 && offsetof(struct fadt, flags) == 112, "ACPI 6.5, 5.2.9");
_Static_assert(FADT_OFFSET + sizeof(struct fadt) <= DSDT_OFFSET, "no overlap");

/* Latencies above 100 and 1000 us say that there is no C2 and no C3. */
enum { NO_C2_LATENCY_US = 101, NO_C3_LATENCY_US = 1001 };

/* IAPC_BOOT_ARCH, section 5.2.9.3. Bit 1, a keyboard controller, is clear: port 0x64 only resets. */
enum { BOOT_LEGACY_DEVICES = 1 << 0, BOOT_NO_VGA = 1 << 2, BOOT_NO_CMOS_RTC = 1 << 5 };

/* Table 5.10; the buttons' and the clock's bits say that fixed hardware has none. */
enum {
	FLAG_WBINVD = 1 << 0,
	FLAG_C1_SUPPORTED = 1 << 2,
	FLAG_NO_FIXED_POWER_BUTTON = 1 << 4,
	FLAG_NO_FIXED_SLEEP_BUTTON = 1 << 5,
	FLAG_NO_FIXED_RTC_WAKE = 1 << 6,
	FLAG_RESET_REGISTER = 1 << 10,
	FLAG_HEADLESS = 1 << 12,
};

/* Section 5.2.12 and its subsections. */
struct madt {
	struct header header;
	uint32_t lapic_gpa;
	uint32_t flags;
} __attribute__((packed));

enum { MADT_PCAT_COMPATIBLE = 1, MADT_LAPIC_ENABLED = 1 };
enum { MADT_LAPIC = 0, MADT_IOAPIC = 1, MADT_INTERRUPT_OVERRIDE = 2, MADT_LAPIC_NMI = 4 };
enum { MADT_ACTIVE_HIGH_LEVEL = 1 | 3 << 2 };

struct madt_lapic {
	uint8_t type;
	uint8_t bytes;
	uint8_t processor_uid;
	uint8_t apic_id;
	uint32_t flags;
} __attribute__((packed));

struct madt_ioapic {
	uint8_t type;
	uint8_t bytes;
	uint8_t id;
	uint8_t reserved;
	uint32_t gpa;
	uint32_t gsi_base;
} __attribute__((packed));

struct madt_override {
	uint8_t type;
	uint8_t bytes;
	uint8_t bus;
	uint8_t irq;
	uint32_t gsi;
	uint16_t flags;
} __attribute__((packed));

struct madt_lapic_nmi {
	uint8_t type;
	uint8_t bytes;
	uint8_t processor_uid;
	uint16_t flags;
	uint8_t lint;
} __attribute__((packed));

_Static_assert(MADT_OFFSET + sizeof(struct madt) + GUEST_VCPUS_MAX * sizeof(struct madt_lapic) +
                               sizeof(struct madt_ioapic) + 2 * sizeof(struct madt_override) +
                               sizeof(struct madt_lapic_nmi) <=
                       ACPI_BYTES_MAX,
               "the largest MADT fits");

/*
 * The DSDT's AML (chapter 20), short because a guest kernel interprets it:
 *
 *   Name (\_S5, Package () { 5, 0, 0, 0 })
 *   Scope (\_SB) {
 *       Device (COM1) {
 *           Name (_HID, EisaId ("PNP0501"))
 *           Name (_UID, 1)
 *           Name (_CRS, ResourceTemplate () {
 *               IO (Decode16, 0x3f8, 0x3f8, 1, 8)
 *               IRQNoFlags () {4}
 *           })
 *       }
 *       Device (COM2) { the same with _UID 2, 0x2f8, IRQ 3 }
 *   }
 *
 * A package length counts itself and what follows it.
 */
#define AML_NAME(a, b, c, d) 0x08, a, b, c, d
#define AML_BYTE(value) 0x0a, value
#define AML_UART_PACKAGE_BYTES 44 /* 1 + 4 (name) + 10 (_HID) + 7 (_UID) + 22 (_CRS) */
#define AML_UART_BYTES (2 + AML_UART_PACKAGE_BYTES)
#define AML_SCOPE_PACKAGE_BYTES (2 + 5 + 2 * AML_UART_BYTES)

/* clang-format off */
#define AML_UART(unit, port, irq)                                                                          \
	0x5b, 0x82, AML_UART_PACKAGE_BYTES, 'C', 'O', 'M', '0' + (unit),                                   \
	AML_NAME('_', 'H', 'I', 'D'), 0x0c, 0x41, 0xd0, 0x05, 0x01, /* "PNP0501", compressed */            \
	AML_NAME('_', 'U', 'I', 'D'), AML_BYTE(unit),                                                      \
	AML_NAME('_', 'C', 'R', 'S'), 0x11, 0x10, AML_BYTE(13), /* buffer of 13 bytes: */                  \
	0x47, 0x01, (port) & 0xff, (port) >> 8, (port) & 0xff, (port) >> 8, 1, 8, /* IO */                 \
	0x22, (1 << (irq)) & 0xff, (1 << (irq)) >> 8, /* IRQ */                                            \
	0x79, 0x00 /* end */

static const uint8_t dsdt_aml[] = {
	AML_NAME('_', 'S', '5', '_'), 0x12, 7, 4, AML_BYTE(BOOT_ACPI_S5_SLEEP_TYPE), 0, 0, 0,
	0x10, 0x40 | (AML_SCOPE_PACKAGE_BYTES & 0xf), AML_SCOPE_PACKAGE_BYTES >> 4, '\\', '_', 'S', 'B', '_',
	AML_UART(1, 0x3f8, 4),
	AML_UART(2, 0x2f8, 3),
};
/* clang-format on */
_Static_assert(sizeof(dsdt_aml) == 5 + 8 + 1 + AML_SCOPE_PACKAGE_BYTES, "the package lengths are right");
_Static_assert(DSDT_OFFSET + sizeof(struct header) + sizeof(dsdt_aml) <= MADT_OFFSET, "no overlap");

static struct header header_make(const char signature[4], uint8_t revision, size_t bytes)
{
	struct header header = {
		.bytes = (uint32_t)bytes,
		.revision = revision,
		.oem_id = OEM_ID,
		.oem_table_id = {'V', 'P', 'R', 'O', 'F', 'V', 'M', ' '},
		.oem_revision = 1,
		.creator_id = {'V', 'P', 'R', 'F'},
		.creator_revision = 1,
	};
	memcpy(header.signature, signature, sizeof(header.signature));
	return header;
}

static void header_seal(struct header *header)
{
	header->checksum = boot_checksum(header, header->bytes);
}

static void rsdp_write(uint8_t *page, uint64_t page_gpa)
{
	struct rsdp *rsdp = (struct rsdp *)(page + RSDP_OFFSET);
	*rsdp = (struct rsdp){
		.signature = {'R', 'S', 'D', ' ', 'P', 'T', 'R', ' '},
		.oem_id = OEM_ID,
		.revision = 2,
		.bytes = sizeof(*rsdp),
		.xsdt_gpa = page_gpa + XSDT_OFFSET,
	};
	rsdp->checksum = boot_checksum(rsdp, offsetof(struct rsdp, bytes));
	rsdp->extended_checksum = boot_checksum(rsdp, sizeof(*rsdp));
}

static void xsdt_write(uint8_t *page, uint64_t page_gpa)
{
	struct xsdt *xsdt = (struct xsdt *)(page + XSDT_OFFSET);
	*xsdt = (struct xsdt){
		.header = header_make("XSDT", 1, sizeof(*xsdt)),
		.table_gpa = {page_gpa + FADT_OFFSET, page_gpa + MADT_OFFSET},
	};
	header_seal(&xsdt->header);
}

static void facs_write(uint8_t *page)
{
	struct facs *facs = (struct facs *)(page + FACS_OFFSET);
	*facs = (struct facs){.signature = {'F', 'A', 'C', 'S'}, .bytes = sizeof(*facs), .version = 2};
}

/* No SMI command port: the machine is in ACPI mode from the start. */
static void fadt_write(uint8_t *page, uint64_t page_gpa)
{
	struct fadt *fadt = (struct fadt *)(page + FADT_OFFSET);
	*fadt = (struct fadt){
		.header = header_make("FACP", 6, sizeof(*fadt)),
		.minor_revision = 5,
		.facs_gpa = (uint32_t)(page_gpa + FACS_OFFSET),
		.dsdt_gpa = (uint32_t)(page_gpa + DSDT_OFFSET),
		.x_dsdt_gpa = page_gpa + DSDT_OFFSET,
		.sci_irq = BOOT_ACPI_SCI_IRQ,
		.pm1a_event_port = BOOT_ACPI_PM1A_EVENT_PORT,
		.pm1_event_bytes = 4,
		.pm1a_control_port = BOOT_ACPI_PM1A_CONTROL_PORT,
		.pm1_control_bytes = 2,
		.c2_latency_us = NO_C2_LATENCY_US,
		.c3_latency_us = NO_C3_LATENCY_US,
		.boot_architecture = BOOT_LEGACY_DEVICES | BOOT_NO_VGA | BOOT_NO_CMOS_RTC,
		.flags = FLAG_WBINVD | FLAG_C1_SUPPORTED | FLAG_NO_FIXED_POWER_BUTTON | FLAG_NO_FIXED_SLEEP_BUTTON |
	                 FLAG_NO_FIXED_RTC_WAKE | FLAG_RESET_REGISTER | FLAG_HEADLESS,
		.reset_register = {.space = SPACE_SYSTEM_IO,
	                           .bits = 8,
	                           .access = ACCESS_BYTE,
	                           .address = BOOT_ACPI_RESET_PORT},
		.reset_value = 0xfe, /* "pulse output line 0" */
	};
	header_seal(&fadt->header);
}

static void dsdt_write(uint8_t *page)
{
	struct header *dsdt = (struct header *)(page + DSDT_OFFSET);
	*dsdt = header_make("DSDT", 2, sizeof(*dsdt) + sizeof(dsdt_aml));
	memcpy(dsdt + 1, dsdt_aml, sizeof(dsdt_aml));
	header_seal(dsdt);
}

static uint8_t *append(uint8_t *end, const void *entry, size_t bytes)
{
	memcpy(end, entry, bytes);
	return end + bytes;
}

static uint8_t *madt_lapics_append(uint8_t *end, unsigned vcpus)
{
	for (unsigned i = 0; i < vcpus; i++) {
		struct madt_lapic lapic = {
			.type = MADT_LAPIC,
			.bytes = sizeof(lapic),
			.processor_uid = (uint8_t)i,
			.apic_id = (uint8_t)i,
			.flags = MADT_LAPIC_ENABLED,
		};
		end = append(end, &lapic, sizeof(lapic));
	}
	return end;
}

static uint8_t *madt_routing_append(uint8_t *end)
{
	static const struct madt_ioapic ioapic = {.type = MADT_IOAPIC, .bytes = sizeof(ioapic), .gpa = BOOT_IOAPIC_GPA};
	/* KVM wires the PIT to pin 2. */
	static const struct madt_override timer = {
		.type = MADT_INTERRUPT_OVERRIDE, .bytes = sizeof(timer), .irq = 0, .gsi = 2};
	static const struct madt_override sci = {
		.type = MADT_INTERRUPT_OVERRIDE,
		.bytes = sizeof(sci),
		.irq = BOOT_ACPI_SCI_IRQ,
		.gsi = BOOT_ACPI_SCI_IRQ,
		.flags = MADT_ACTIVE_HIGH_LEVEL,
	};
	static const struct madt_lapic_nmi nmi = {
		.type = MADT_LAPIC_NMI, .bytes = sizeof(nmi), .processor_uid = 0xff, .lint = 1};

	end = append(end, &ioapic, sizeof(ioapic));
	end = append(end, &timer, sizeof(timer));
	end = append(end, &sci, sizeof(sci));
	return append(end, &nmi, sizeof(nmi));
}

static void madt_write(uint8_t *page, unsigned vcpus)
{
	struct madt *madt = (struct madt *)(page + MADT_OFFSET);
	uint8_t *end = madt_routing_append(madt_lapics_append((uint8_t *)(madt + 1), vcpus));
	*madt = (struct madt){
		.header = header_make("APIC", 5, (size_t)(end - (uint8_t *)madt)),
		.lapic_gpa = BOOT_LAPIC_GPA,
		.flags = MADT_PCAT_COMPATIBLE,
	};
	header_seal(&madt->header);
}

void acpi_write(void *to, gpa_t at, unsigned vcpus)
{
	rsdp_write(to, at.value);
	xsdt_write(to, at.value);
	facs_write(to);
	fadt_write(to, at.value);
	dsdt_write(to);
	madt_write(to, vcpus);
}
