// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/x86/mptable.h"

#include <stddef.h>
#include <string.h>

#include "kvm/boot/x86/boot_layout.h"
#include "kvm/boot/x86/boot_ports.h"

#define SPECIFICATION_1_4 4u
#define LAPIC_VERSION 0x14u /* integrated APIC */
#define IOAPIC_VERSION 0x11u
#define ISA_IRQS 16u
#define ISA_BUS_ID 0u
#define ALL_LAPICS 0xffu
#define PROCESSOR_SIGNATURE 0x600u /* family 6 */
#define PROCESSOR_FEATURES 0x201u  /* FPU, APIC */

/* Entry types and, for the interrupt entries, interrupt types: specification, tables 4-3, 4-10. */
enum { ENTRY_PROCESSOR, ENTRY_BUS, ENTRY_IOAPIC, ENTRY_IO_INTERRUPT, ENTRY_LOCAL_INTERRUPT };
enum { INTERRUPT_VECTORED = 0, INTERRUPT_NMI = 1, INTERRUPT_EXTERNAL = 3 };
enum { PROCESSOR_ENABLED = 1, PROCESSOR_BOOT = 2, IOAPIC_ENABLED = 1 };

struct floating_pointer {
	char signature[4];
	uint32_t table_gpa;
	uint8_t paragraphs;
	uint8_t revision;
	uint8_t checksum;
	uint8_t features[5];
};
_Static_assert(sizeof(struct floating_pointer) == 16, "one paragraph");

struct table_header {
	char signature[4];
	uint16_t bytes;
	uint8_t revision;
	uint8_t checksum;
	char oem[8];
	char product[12];
	uint32_t oem_table_gpa;
	uint16_t oem_table_bytes;
	uint16_t entries;
	uint32_t lapic_gpa;
	uint32_t extended;
};
_Static_assert(sizeof(struct table_header) == 44, "specification, figure 4-3");

struct processor_entry {
	uint8_t type;
	uint8_t apic_id;
	uint8_t apic_version;
	uint8_t flags;
	uint32_t signature;
	uint32_t features;
	uint32_t reserved[2];
};
_Static_assert(sizeof(struct processor_entry) == 20, "specification, table 4-4");

struct bus_entry {
	uint8_t type;
	uint8_t id;
	char name[6];
};

struct ioapic_entry {
	uint8_t type;
	uint8_t id;
	uint8_t version;
	uint8_t flags;
	uint32_t gpa;
};

/* IO and local interrupts. Flags 0: polarity and trigger as the source bus has them; for ISA active high, edge. */
struct interrupt_entry {
	uint8_t type;
	uint8_t interrupt;
	uint16_t flags;
	uint8_t bus;
	uint8_t irq;
	uint8_t apic_id;
	uint8_t pin;
};

_Static_assert(sizeof(struct floating_pointer) + sizeof(struct table_header) +
                               GUEST_VCPUS_MAX * sizeof(struct processor_entry) + sizeof(struct bus_entry) +
                               sizeof(struct ioapic_entry) + (ISA_IRQS + 2) * sizeof(struct interrupt_entry) <=
                       MPTABLE_BYTES_MAX,
               "the largest table fits");

struct table {
	struct table_header *header;
	uint8_t *end;
};

static void entry_add(struct table *table, const void *entry, size_t bytes)
{
	memcpy(table->end, entry, bytes);
	table->end += bytes;
	table->header->entries++;
}

static void processors_add(struct table *table, unsigned vcpus)
{
	for (unsigned i = 0; i < vcpus; i++) {
		struct processor_entry entry = {
			.type = ENTRY_PROCESSOR,
			.apic_id = (uint8_t)i,
			.apic_version = LAPIC_VERSION,
			.flags = i == 0 ? PROCESSOR_ENABLED | PROCESSOR_BOOT : PROCESSOR_ENABLED,
			.signature = PROCESSOR_SIGNATURE,
			.features = PROCESSOR_FEATURES,
		};

		entry_add(table, &entry, sizeof(entry));
	}
}

static void io_interrupts_add(struct table *table, uint8_t ioapic_id)
{
	for (unsigned irq = 0; irq < ISA_IRQS; irq++) {
		/* The second PIC hangs on IRQ 2, so no device does; its pin takes the PIT (virt/kvm ioapic routing). */
		if (irq == 2)
			continue;
		struct interrupt_entry entry = {
			.type = ENTRY_IO_INTERRUPT,
			.interrupt = INTERRUPT_VECTORED,
			.bus = ISA_BUS_ID,
			.irq = (uint8_t)irq,
			.apic_id = ioapic_id,
			.pin = irq == 0 ? 2 : (uint8_t)irq,
		};
		entry_add(table, &entry, sizeof(entry));
	}
}

/* LINT0 takes the PIC, LINT1 the NMI, on every processor. */
static void local_interrupts_add(struct table *table)
{
	static const struct interrupt_entry lint[] = {
		{.type = ENTRY_LOCAL_INTERRUPT, .interrupt = INTERRUPT_EXTERNAL, .apic_id = 0, .pin = 0},
		{.type = ENTRY_LOCAL_INTERRUPT, .interrupt = INTERRUPT_NMI, .apic_id = ALL_LAPICS, .pin = 1},
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(lint); i++)
		entry_add(table, &lint[i], sizeof(lint[i]));
}

static void entries_add(struct table *table, unsigned vcpus)
{
	const struct bus_entry isa = {.type = ENTRY_BUS, .id = ISA_BUS_ID, .name = {'I', 'S', 'A', ' ', ' ', ' '}};
	/* APIC ids are unique over both kinds here, unlike in ACPI: the IOAPIC's follows the processors'. */
	const struct ioapic_entry ioapic = {
		.type = ENTRY_IOAPIC,
		.id = (uint8_t)vcpus,
		.version = IOAPIC_VERSION,
		.flags = IOAPIC_ENABLED,
		.gpa = BOOT_IOAPIC_GPA,
	};

	processors_add(table, vcpus);
	entry_add(table, &isa, sizeof(isa));
	entry_add(table, &ioapic, sizeof(ioapic));
	io_interrupts_add(table, ioapic.id);
	local_interrupts_add(table);
}

void mptable_write(void *to, gpa_t at, unsigned vcpus)
{
	struct floating_pointer *pointer = to;
	struct table_header *header = (struct table_header *)(pointer + 1);
	struct table table = {.header = header, .end = (uint8_t *)(header + 1)};

	*header = (struct table_header){
		.signature = {'P', 'C', 'M', 'P'},
		.revision = SPECIFICATION_1_4,
		.oem = {'V', 'P', 'R', 'O', 'F', ' ', ' ', ' '},
		.product = {'V', 'M', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '},
		.lapic_gpa = BOOT_LAPIC_GPA,
	};
	entries_add(&table, vcpus);
	header->bytes = (uint16_t)(table.end - (uint8_t *)header);
	header->checksum = boot_checksum(header, header->bytes);

	*pointer = (struct floating_pointer){
		.signature = {'_', 'M', 'P', '_'},
		.table_gpa = (uint32_t)(at.value + sizeof(*pointer)),
		.paragraphs = 1,
		.revision = SPECIFICATION_1_4,
	};
	pointer->checksum = boot_checksum(pointer, sizeof(*pointer));
}
