// SPDX-License-Identifier: BSD-2-Clause
/* Reads the tables as a kernel does: from the RSDP on, by offsets of the ACPI specification. */
#include <check.h>
#include <string.h>

#include "kvm/boot/x86/acpi.h"
#include "kvm/boot/x86/boot_ports.h"
#include "run_suite.h"

#define BASE UINT64_C(0xe0000)

static uint8_t area[ACPI_BYTES_MAX];

static uint64_t get(const uint8_t *table, size_t offset, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, table + offset, bytes);
	return value;
}

static const uint8_t *at(uint64_t gpa)
{
	ck_assert_uint_ge(gpa, BASE);
	ck_assert_uint_lt(gpa, BASE + sizeof(area));
	return area + (gpa - BASE);
}

static void assert_sum_is_zero(const uint8_t *bytes, size_t n)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum = (uint8_t)(sum + bytes[i]);
	ck_assert_uint_eq(sum, 0);
}

static const uint8_t *table_at(uint64_t gpa, const char *signature)
{
	const uint8_t *table = at(gpa);
	uint64_t bytes = get(table, 4, 4);

	ck_assert_mem_eq(table, signature, 4);
	ck_assert_uint_ge(bytes, 36);
	ck_assert_uint_le(gpa + bytes, BASE + sizeof(area));
	assert_sum_is_zero(table, bytes);
	return table;
}

static const uint8_t *xsdt_entry(unsigned index, const char *signature)
{
	const uint8_t *xsdt = table_at(get(area, 24, 8), "XSDT");

	ck_assert_uint_lt(36 + 8 * index, get(xsdt, 4, 4));
	return table_at(get(xsdt, 36 + 8 * index, 8), signature);
}

static void tables_make(unsigned vcpus)
{
	memset(area, 0, sizeof(area));
	acpi_write(area, (gpa_t){BASE}, vcpus, 0);
}

START_TEST(rsdp_has_both_checksums)
{
	tables_make(1);
	ck_assert_mem_eq(area, "RSD PTR ", 8);
	ck_assert_uint_eq(area[15], 2);
	ck_assert_uint_eq(get(area, 20, 4), 36);
	assert_sum_is_zero(area, 20);
	assert_sum_is_zero(area, 36);
}
END_TEST

START_TEST(fadt_agrees_with_the_devices)
{
	const uint8_t *fadt, *facs;

	tables_make(1);
	fadt = xsdt_entry(0, "FACP");
	ck_assert_uint_eq(get(fadt, 4, 4), 276);
	ck_assert_uint_eq(get(fadt, 46, 2), BOOT_ACPI_SCI_IRQ);
	ck_assert_uint_eq(get(fadt, 48, 4), 0); /* no SMI command: always in ACPI mode */
	ck_assert_uint_eq(get(fadt, 56, 4), BOOT_ACPI_PM1A_EVENT_PORT);
	ck_assert_uint_eq(get(fadt, 64, 4), BOOT_ACPI_PM1A_CONTROL_PORT);
	ck_assert_uint_eq(get(fadt, 76, 4), 0); /* no PM timer */
	ck_assert_uint_eq(fadt[88], 4);
	ck_assert_uint_eq(fadt[89], 2);
	ck_assert_uint_eq(fadt[91], 0);
	ck_assert_uint_eq(get(fadt, 109, 2), 0x25);        /* ISA devices; neither 8042 nor VGA nor RTC */
	ck_assert_uint_eq(get(fadt, 112, 4) >> 10 & 1, 1); /* RESET_REG_SUP */
	ck_assert_uint_eq(get(fadt, 112, 4) >> 20 & 1, 0); /* not HW_REDUCED_ACPI */
	ck_assert_uint_eq(fadt[116], 1);                   /* system I/O */
	ck_assert_uint_eq(get(fadt, 120, 8), BOOT_ACPI_RESET_PORT);
	ck_assert_uint_eq(fadt[128], 0xfe);
	facs = at(get(fadt, 36, 4));
	ck_assert_mem_eq(facs, "FACS", 4);
	ck_assert_uint_eq(get(facs, 4, 4), 64);
	ck_assert_uint_eq(get(fadt, 36, 4) % 64, 0);
	ck_assert_uint_eq(get(fadt, 40, 4), get(fadt, 140, 8));
}
END_TEST

START_TEST(dsdt_tells_how_to_sleep)
{
	static const uint8_t s5[] = {0x08, '_', 'S', '5', '_', 0x12, 0x07, 0x04, 0x0a, BOOT_ACPI_S5_SLEEP_TYPE};
	const uint8_t *dsdt;

	tables_make(1);
	dsdt = table_at(get(xsdt_entry(0, "FACP"), 40, 4), "DSDT");
	ck_assert_mem_eq(dsdt + 36, s5, sizeof(s5));
}
END_TEST

struct madt_contents {
	unsigned lapics, ioapics, nmis;
	uint64_t gsi_of_irq[16]; /* with flags << 32 */
};

static void madt_entry_read(struct madt_contents *contents, const uint8_t *entry)
{
	switch (entry[0]) {
	case 0:
		ck_assert_uint_eq(entry[1], 8);
		ck_assert_uint_eq(entry[2], contents->lapics);
		ck_assert_uint_eq(entry[3], contents->lapics);
		ck_assert_uint_eq(get(entry, 4, 4), 1);
		contents->lapics++;
		break;
	case 1:
		ck_assert_uint_eq(entry[1], 12);
		ck_assert_uint_eq(get(entry, 4, 4), BOOT_IOAPIC_GPA);
		ck_assert_uint_eq(get(entry, 8, 4), 0);
		contents->ioapics++;
		break;
	case 2:
		ck_assert_uint_eq(entry[1], 10);
		ck_assert_uint_lt(entry[3], 16);
		contents->gsi_of_irq[entry[3]] = get(entry, 4, 4) | get(entry, 8, 2) << 32;
		break;
	case 4:
		ck_assert_uint_eq(entry[1], 6);
		ck_assert_uint_eq(entry[2], 0xff);
		ck_assert_uint_eq(entry[5], 1);
		contents->nmis++;
		break;
	default:
		ck_abort_msg("MADT entry of type %u", entry[0]);
	}
}

START_TEST(madt_lists_every_vcpu)
{
	for (unsigned vcpus = 1; vcpus <= GUEST_VCPUS_MAX; vcpus++) {
		struct madt_contents contents = {0};
		const uint8_t *madt;
		size_t offset = 44;

		tables_make(vcpus);
		madt = xsdt_entry(1, "APIC");
		ck_assert_uint_eq(get(madt, 36, 4), BOOT_LAPIC_GPA);
		ck_assert_uint_eq(get(madt, 40, 4), 1);
		for (; offset < get(madt, 4, 4); offset += madt[offset + 1])
			madt_entry_read(&contents, madt + offset);
		ck_assert_uint_eq(offset, get(madt, 4, 4));
		ck_assert_uint_eq(contents.lapics, vcpus);
		ck_assert_uint_eq(contents.ioapics, 1);
		ck_assert_uint_eq(contents.nmis, 1);
		ck_assert_uint_eq(contents.gsi_of_irq[0], 2);
		ck_assert_uint_eq(contents.gsi_of_irq[BOOT_ACPI_SCI_IRQ], BOOT_ACPI_SCI_IRQ | UINT64_C(0xd) << 32);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("acpi");
	TCase *tests = tcase_create("acpi");

	tcase_add_test(tests, rsdp_has_both_checksums);
	tcase_add_test(tests, fadt_agrees_with_the_devices);
	tcase_add_test(tests, dsdt_tells_how_to_sleep);
	tcase_add_test(tests, madt_lists_every_vcpu);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
