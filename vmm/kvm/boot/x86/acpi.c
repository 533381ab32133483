// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/x86/acpi.h"

#include <string.h>

#include "kvm/boot/boot_devices.h"
#include "kvm/boot/x86/acpi_priv.h"
#include "kvm/boot/x86/boot_layout.h"
#include "kvm/boot/x86/boot_ports.h"

/* Tables have fixed places in the page; the MADT is the last, as its size depends on the vCPUs. */
enum {
	RSDP_OFFSET = 0,
	XSDT_OFFSET = 0x40,
	FACS_OFFSET = 0x80, /* "aligned on a 64-byte boundary" */
	FADT_OFFSET = 0xc0,
	DSDT_OFFSET = 0x200,
	MADT_OFFSET = 0x500,
};

_Static_assert(XSDT_OFFSET + sizeof(struct acpi_xsdt) <= FACS_OFFSET, "no overlap");
_Static_assert(FADT_OFFSET + sizeof(struct acpi_fadt) <= DSDT_OFFSET, "no overlap");
_Static_assert(MADT_OFFSET + sizeof(struct acpi_madt) + GUEST_VCPUS_MAX * sizeof(struct acpi_madt_lapic) +
                               sizeof(struct acpi_madt_ioapic) + 2 * sizeof(struct acpi_madt_override) +
                               sizeof(struct acpi_madt_lapic_nmi) <=
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
 *       Device (VIO0) {                     for each virtio device; Linux: drivers/virtio/virtio_mmio.c
 *           Name (_HID, "LNRO0005")
 *           Name (_UID, 0)
 *           Name (_CRS, ResourceTemplate () {
 *               Memory32Fixed (ReadWrite, BOOT_VIRTIO_GPA, 0x1000)
 *               Interrupt (ResourceConsumer, Edge, ActiveHigh, Exclusive) {irq}
 *           })
 *       }
 *   }
 *
 * A package length counts itself and what follows it.
 */
#define AML_NAME(a, b, c, d) 0x08, a, b, c, d
#define AML_BYTE(value) 0x0a, value
#define AML_UART_PACKAGE_BYTES 44 /* 1 + 4 (name) + 10 (_HID) + 7 (_UID) + 22 (_CRS) */
#define AML_UART_BYTES (2 + AML_UART_PACKAGE_BYTES)
#define AML_S5_BYTES 13
#define AML_SCOPE_PACKAGE_BYTES (2 + 5 + 2 * AML_UART_BYTES)
#define AML_VIRTIO_PACKAGE_BYTES 59 /* 1 + 4 (name) + 15 (_HID) + 7 (_UID) + 32 (_CRS) */
#define AML_VIRTIO_BYTES (2 + AML_VIRTIO_PACKAGE_BYTES)
/* A package length of two bytes: the low four bits, and eight more (chapter 20.2.4). */
#define AML_LENGTH(bytes) 0x40 | ((bytes)&0xf), (bytes) >> 4
#define AML_DWORD(value) (value) & 0xff, (value) >> 8 & 0xff, (value) >> 16 & 0xff, (uint8_t)((value) >> 24)

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
	0x10, AML_LENGTH(AML_SCOPE_PACKAGE_BYTES), '\\', '_', 'S', 'B', '_',
	AML_UART(1, 0x3f8, 4),
	AML_UART(2, 0x2f8, 3),
};

/* "VIOn" at its place, on its line. */
static void virtio_aml_write(uint8_t *to, unsigned n)
{
	const uint32_t gpa = BOOT_VIRTIO_GPA(n), irq = boot_virtio_irq(n);
	const uint8_t aml[] = {
		0x5b, 0x82, AML_VIRTIO_PACKAGE_BYTES, 'V', 'I', 'O', (uint8_t)('0' + n),
		AML_NAME('_', 'H', 'I', 'D'), 0x0d, 'L', 'N', 'R', 'O', '0', '0', '0', '5', 0,
		AML_NAME('_', 'U', 'I', 'D'), AML_BYTE((uint8_t)n),
		AML_NAME('_', 'C', 'R', 'S'), 0x11, 0x1a, AML_BYTE(23), /* buffer of 23 bytes: */
		0x86, 9, 0, 1, AML_DWORD(gpa), AML_DWORD(BOOT_VIRTIO_BYTES), /* memory */
		0x89, 6, 0, 3, 1, AML_DWORD(irq), /* interrupt */
		0x79, 0x00, /* end */
	};

	_Static_assert(sizeof(aml) == AML_VIRTIO_BYTES, "the package lengths are right");
	memcpy(to, aml, sizeof(aml));
}
/* clang-format on */
_Static_assert(sizeof(dsdt_aml) == AML_S5_BYTES + 1 + AML_SCOPE_PACKAGE_BYTES, "the package lengths are right");
_Static_assert(DSDT_OFFSET + sizeof(struct acpi_header) + sizeof(dsdt_aml) + BOOT_VIRTIO_MAX * AML_VIRTIO_BYTES <=
                       MADT_OFFSET,
               "no overlap");

static struct acpi_header header_make(const char signature[4], uint8_t revision, size_t bytes)
{
	struct acpi_header header = {
		.bytes = (uint32_t)bytes,
		.revision = revision,
		.oem_id = {'V', 'P', 'R', 'O', 'F', ' '},
		.oem_table_id = {'V', 'P', 'R', 'O', 'F', 'V', 'M', ' '},
		.oem_revision = 1,
		.creator_id = {'V', 'P', 'R', 'F'},
		.creator_revision = 1,
	};

	memcpy(header.signature, signature, sizeof(header.signature));
	return header;
}

static void header_seal(struct acpi_header *header)
{
	header->checksum = boot_checksum(header, header->bytes);
}

static void rsdp_write(uint8_t *page, uint64_t page_gpa)
{
	struct acpi_rsdp *rsdp = (struct acpi_rsdp *)(page + RSDP_OFFSET);

	*rsdp = (struct acpi_rsdp){
		.signature = {'R', 'S', 'D', ' ', 'P', 'T', 'R', ' '},
		.oem_id = {'V', 'P', 'R', 'O', 'F', ' '},
		.revision = 2,
		.bytes = sizeof(*rsdp),
		.xsdt_gpa = page_gpa + XSDT_OFFSET,
	};
	rsdp->checksum = boot_checksum(rsdp, offsetof(struct acpi_rsdp, bytes));
	rsdp->extended_checksum = boot_checksum(rsdp, sizeof(*rsdp));
}

static void xsdt_write(uint8_t *page, uint64_t page_gpa)
{
	struct acpi_xsdt *xsdt = (struct acpi_xsdt *)(page + XSDT_OFFSET);

	*xsdt = (struct acpi_xsdt){
		.header = header_make("XSDT", 1, sizeof(*xsdt)),
		.table_gpa = {page_gpa + FADT_OFFSET, page_gpa + MADT_OFFSET},
	};
	header_seal(&xsdt->header);
}

static void facs_write(uint8_t *page)
{
	struct acpi_facs *facs = (struct acpi_facs *)(page + FACS_OFFSET);

	*facs = (struct acpi_facs){.signature = {'F', 'A', 'C', 'S'}, .bytes = sizeof(*facs), .version = 2};
}

/* No SMI command port: the machine is in ACPI mode from the start. */
static void fadt_write(uint8_t *page, uint64_t page_gpa)
{
	struct acpi_fadt *fadt = (struct acpi_fadt *)(page + FADT_OFFSET);

	*fadt = (struct acpi_fadt){
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
		.c2_latency_us = ACPI_NO_C2_LATENCY_US,
		.c3_latency_us = ACPI_NO_C3_LATENCY_US,
		.boot_architecture = ACPI_BOOT_LEGACY_DEVICES | ACPI_BOOT_NO_VGA | ACPI_BOOT_NO_CMOS_RTC,
		.flags = ACPI_FLAG_WBINVD | ACPI_FLAG_C1_SUPPORTED | ACPI_FLAG_NO_FIXED_POWER_BUTTON |
	                 ACPI_FLAG_NO_FIXED_SLEEP_BUTTON | ACPI_FLAG_NO_FIXED_RTC_WAKE | ACPI_FLAG_RESET_REGISTER |
	                 ACPI_FLAG_HEADLESS,
		.reset_register = {ACPI_SPACE_SYSTEM_IO, 8, 0, ACPI_ACCESS_BYTE, BOOT_ACPI_RESET_PORT},
		.reset_value = 0xfe, /* i8042 command: pulse the reset line */
	};
	header_seal(&fadt->header);
}

static void dsdt_write(uint8_t *page, unsigned n_virtio)
{
	struct acpi_header *dsdt = (struct acpi_header *)(page + DSDT_OFFSET);
	uint8_t *aml = (uint8_t *)(dsdt + 1);
	const size_t scope_bytes = AML_SCOPE_PACKAGE_BYTES + n_virtio * AML_VIRTIO_BYTES;
	const uint8_t scope_length[] = {(uint8_t)(0x40 | (scope_bytes & 0xf)), (uint8_t)(scope_bytes >> 4)};

	*dsdt = header_make("DSDT", 2, sizeof(*dsdt) + AML_S5_BYTES + 1 + scope_bytes);
	memcpy(aml, dsdt_aml, sizeof(dsdt_aml));
	memcpy(aml + AML_S5_BYTES + 1, scope_length, sizeof(scope_length));
	for (unsigned i = 0; i < n_virtio; i++)
		virtio_aml_write(aml + sizeof(dsdt_aml) + i * AML_VIRTIO_BYTES, i);
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
		struct acpi_madt_lapic lapic = {
			.type = ACPI_MADT_LAPIC,
			.bytes = sizeof(lapic),
			.processor_uid = (uint8_t)i,
			.apic_id = (uint8_t)i,
			.flags = ACPI_MADT_LAPIC_ENABLED,
		};

		end = append(end, &lapic, sizeof(lapic));
	}
	return end;
}

static uint8_t *madt_routing_append(uint8_t *end)
{
	static const struct acpi_madt_ioapic ioapic = {
		.type = ACPI_MADT_IOAPIC, .bytes = sizeof(ioapic), .gpa = BOOT_IOAPIC_GPA};
	/* KVM wires the PIT to pin 2. */
	static const struct acpi_madt_override timer = {
		.type = ACPI_MADT_INTERRUPT_OVERRIDE, .bytes = sizeof(timer), .irq = 0, .gsi = 2};
	static const struct acpi_madt_override sci = {
		.type = ACPI_MADT_INTERRUPT_OVERRIDE,
		.bytes = sizeof(sci),
		.irq = BOOT_ACPI_SCI_IRQ,
		.gsi = BOOT_ACPI_SCI_IRQ,
		.flags = ACPI_MADT_ACTIVE_HIGH_LEVEL,
	};
	static const struct acpi_madt_lapic_nmi nmi = {
		.type = ACPI_MADT_LAPIC_NMI, .bytes = sizeof(nmi), .processor_uid = 0xff, .lint = 1};

	end = append(end, &ioapic, sizeof(ioapic));
	end = append(end, &timer, sizeof(timer));
	end = append(end, &sci, sizeof(sci));
	return append(end, &nmi, sizeof(nmi));
}

static void madt_write(uint8_t *page, unsigned vcpus)
{
	struct acpi_madt *madt = (struct acpi_madt *)(page + MADT_OFFSET);
	uint8_t *end = madt_routing_append(madt_lapics_append((uint8_t *)(madt + 1), vcpus));

	*madt = (struct acpi_madt){
		.header = header_make("APIC", 5, (size_t)(end - (uint8_t *)madt)),
		.lapic_gpa = BOOT_LAPIC_GPA,
		.flags = ACPI_MADT_PCAT_COMPATIBLE,
	};
	header_seal(&madt->header);
}

void acpi_write(void *to, gpa_t at, unsigned vcpus, unsigned n_virtio)
{
	rsdp_write(to, at.value);
	xsdt_write(to, at.value);
	facs_write(to);
	fadt_write(to, at.value);
	dsdt_write(to, n_virtio);
	madt_write(to, vcpus);
}
