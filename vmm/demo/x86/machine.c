// SPDX-License-Identifier: BSD-2-Clause
#include "demo/machine.h"

#include "demo/x86/layout.h"
#include "demo/x86/x86.h"

#define HVM_START_MAGIC 0x336ec578u
struct hvm_start_info {
	uint32_t magic, version, flags, n_modules;
	uint64_t modules_gpa, command_line_gpa, rsdp_gpa;
};

struct __attribute__((packed)) rsdp {
	char signature[8];
	uint8_t checksum;
	char oem[6];
	uint8_t revision;
	uint32_t rsdt_gpa, length;
	uint64_t xsdt_gpa;
};

struct __attribute__((packed)) acpi_table {
	char signature[4];
	uint32_t length;
	uint8_t revision, checksum;
	char oem[6], oem_table[8];
	uint32_t oem_revision, creator, creator_revision;
};

/* Behind the table header of the MADT: local APIC address, flags, then entries. */
#define MADT_ENTRIES_OFFSET (sizeof(struct acpi_table) + 8)
#define MADT_LOCAL_APIC 0
#define MADT_ENABLED 1u
struct __attribute__((packed)) madt_local_apic {
	uint8_t type, length, processor, apic_id;
	uint32_t flags;
};

#define LAPIC_ID 0x20
#define LAPIC_ICR 0x300
#define LAPIC_ICR_HIGH 0x310
#define ICR_PENDING 0x1000u
#define ICR_INIT 0x4500u
#define ICR_STARTUP 0x4600u

#define KVM_CPUID_SIGNATURE 0x40000000u
#define KVM_CPUID_SIGNATURE_EBX 0x4b4d564bu /* "KVMK" */
#define KVM_CPUID_FEATURES 0x40000001u
#define KVM_FEATURE_CLOCKSOURCE2 0x8u
#define MSR_KVM_SYSTEM_TIME_NEW 0x4b564d01u

/* Linux, Documentation/virt/kvm/x86/msr.rst: nanoseconds are (ticks << tsc_shift) * tsc_to_system_mul >> 32. */
struct pvclock_vcpu_time_info {
	uint32_t version, pad;
	uint64_t tsc_timestamp, system_time;
	uint32_t tsc_to_system_mul;
	int8_t tsc_shift;
	uint8_t flags, pad2[2];
};
_Static_assert(sizeof(struct pvclock_vcpu_time_info) == 32, "msr.rst");

#define PIC_MASTER_DATA 0x21
#define PIC_SLAVE_DATA 0xa1

#define ACPI_PM1A_CONTROL_PORT 0x604
#define ACPI_SLEEP_ENABLE 0x2000u
#define ACPI_S5_TYPE (5u << 10)
#define EXIT_PORT 0xf4
#define PHASE_PORT 0x80

extern uint32_t start_info_gpa; /* start.S */
extern const uint8_t ap_trampoline[], ap_trampoline_end[];

/* Guest physical memory; NULL outside of what is mapped. */
static const void *physical(uint64_t gpa)
{
	return gpa != 0 && gpa < MAPPED_BYTES ? (const void *)(KERNEL_BASE + gpa) : 0;
}

static const struct hvm_start_info *start_info(void)
{
	const struct hvm_start_info *info = physical(start_info_gpa);

	return info && info->magic == HVM_START_MAGIC ? info : 0;
}

const char *machine_command_line(void)
{
	const struct hvm_start_info *info = start_info();

	return info ? physical(info->command_line_gpa) : 0;
}

uint64_t machine_clock_hz(void)
{
	static struct pvclock_vcpu_time_info clock __attribute__((aligned(32)));
	if (cpuid(KVM_CPUID_SIGNATURE).ebx != KVM_CPUID_SIGNATURE_EBX ||
	    !(cpuid(KVM_CPUID_FEATURES).eax & KVM_FEATURE_CLOCKSOURCE2))
		return 1000000000;
	wrmsr(MSR_KVM_SYSTEM_TIME_NEW, ((uint64_t)&clock - KERNEL_BASE) | 1);
	const uint64_t hz = (UINT64_C(1000000000) << 32) / clock.tsc_to_system_mul;
	const uint64_t scaled = clock.tsc_shift < 0 ? hz << -clock.tsc_shift : hz >> clock.tsc_shift;
	wrmsr(MSR_KVM_SYSTEM_TIME_NEW, 0);
	return scaled;
}

/* The RSDT holds 32-bit addresses, the XSDT 64-bit ones. */
static const struct acpi_table *madt_find(void)
{
	const struct hvm_start_info *info = start_info();
	const struct rsdp *rsdp = info ? physical(info->rsdp_gpa) : 0;

	if (!rsdp)
		return 0;
	const unsigned entry_bytes = rsdp->revision >= 2 ? 8 : 4;
	const struct acpi_table *root = physical(entry_bytes == 8 ? rsdp->xsdt_gpa : rsdp->rsdt_gpa);
	if (!root)
		return 0;
	for (unsigned at = sizeof *root; at + entry_bytes <= root->length; at += entry_bytes) {
		const uint32_t *entry = (const uint32_t *)((const uint8_t *)root + at);
		const struct acpi_table *table = physical(entry[0] | (entry_bytes == 8 ? (uint64_t)entry[1] << 32 : 0));

		if (table && text_starts_with(table->signature, "APIC"))
			return table;
	}
	return 0;
}

static volatile uint32_t *lapic(unsigned offset)
{
	return (volatile uint32_t *)(LAPIC_BASE + offset);
}

void machine_vcpus_find(struct machine_vcpus *found)
{
	const struct acpi_table *madt = madt_find();

	found->n = 0;
	for (unsigned at = MADT_ENTRIES_OFFSET; madt && at + sizeof(struct madt_local_apic) <= madt->length;) {
		const struct madt_local_apic *entry = (const void *)((const uint8_t *)madt + at);

		if (entry->type == MADT_LOCAL_APIC && (entry->flags & MADT_ENABLED) && found->n < VCPUS_MAX)
			found->ids[found->n++] = entry->apic_id;
		if (entry->length == 0)
			break;
		at += entry->length;
	}
	if (found->n == 0)
		found->ids[found->n++] = *lapic(LAPIC_ID) >> 24;
}

void machine_interrupts_mask(void)
{
	outb(PIC_MASTER_DATA, 0xff);
	outb(PIC_SLAVE_DATA, 0xff);
}

static void interrupt_send(uint32_t apic_id, uint32_t command)
{
	*lapic(LAPIC_ICR_HIGH) = apic_id << 24;
	*lapic(LAPIC_ICR) = command;
	while (*lapic(LAPIC_ICR) & ICR_PENDING)
		cpu_relax();
}

void machine_vcpus_start(const struct machine_vcpus *found)
{
	const uint32_t self = *lapic(LAPIC_ID) >> 24;
	uint8_t *to = (uint8_t *)(KERNEL_BASE + AP_TRAMPOLINE_GPA);

	for (const uint8_t *from = ap_trampoline; from < ap_trampoline_end; from++)
		*to++ = *from;
	/* A hypervisor keeps a SIPI that comes right behind the INIT; the waits of the SDM are for real processors. */
	for (unsigned i = 0; i < found->n; i++) {
		if (found->ids[i] == self)
			continue;
		interrupt_send(found->ids[i], ICR_INIT);
		interrupt_send(found->ids[i], ICR_STARTUP | AP_TRAMPOLINE_GPA >> 12);
	}
}

void machine_phase(uint8_t phase)
{
	outb(PHASE_PORT, phase);
}

void machine_power_off(void)
{
	outw(ACPI_PM1A_CONTROL_PORT, ACPI_SLEEP_ENABLE | ACPI_S5_TYPE);
	outw(ACPI_PM1A_CONTROL_PORT, ACPI_SLEEP_ENABLE); /* QEMU's S5 is type 0 */
	halt();
}

void machine_fail(void)
{
	outb(EXIT_PORT, 1);
	halt();
}
