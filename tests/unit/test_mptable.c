// SPDX-License-Identifier: BSD-2-Clause
/* Reads the table by offsets of the MultiProcessor Specification 1.4, as Linux's mpparse.c walks it. */
#include <check.h>
#include <string.h>

#include "kvm/boot/x86/boot_ports.h"
#include "kvm/boot/x86/mptable.h"
#include "run_suite.h"

#define BASE UINT64_C(0xf0000)

static uint8_t area[MPTABLE_BYTES_MAX];

struct contents {
	unsigned entries, processors, buses, ioapics, interrupts, local_interrupts;
	uint8_t ioapic_id;
	uint8_t pin_of_irq[16];
};

static uint32_t get(const uint8_t *at, size_t bytes)
{
	uint32_t value = 0;

	memcpy(&value, at, bytes);
	return value;
}

static void assert_sum_is_zero(const uint8_t *bytes, size_t n)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum = (uint8_t)(sum + bytes[i]);
	ck_assert_uint_eq(sum, 0);
}

static size_t processor_read(struct contents *contents, const uint8_t *entry)
{
	ck_assert_uint_eq(entry[1], contents->processors);
	ck_assert_uint_eq(entry[3], contents->processors == 0 ? 3 : 1);
	contents->processors++;
	return 20;
}

static void interrupt_read(struct contents *contents, const uint8_t *entry)
{
	ck_assert_uint_eq(entry[1], 0);
	ck_assert_uint_eq(get(entry + 2, 2), 0);
	ck_assert_uint_lt(entry[5], 16);
	ck_assert_uint_eq(entry[6], contents->ioapic_id);
	contents->pin_of_irq[entry[5]] = entry[7];
	contents->interrupts++;
}

/* Returns the entry's size. */
static size_t entry_read(struct contents *contents, const uint8_t *entry)
{
	contents->entries++;
	switch (entry[0]) {
	case 0:
		return processor_read(contents, entry);
	case 1:
		ck_assert_mem_eq(entry + 2, "ISA   ", 6);
		contents->buses++;
		break;
	case 2:
		ck_assert_uint_eq(entry[3], 1);
		ck_assert_uint_eq(get(entry + 4, 4), BOOT_IOAPIC_GPA);
		contents->ioapic_id = entry[1];
		contents->ioapics++;
		break;
	case 3:
		interrupt_read(contents, entry);
		break;
	case 4:
		ck_assert_uint_eq(entry[7], contents->local_interrupts);
		contents->local_interrupts++;
		break;
	default:
		ck_abort_msg("MP table entry of type %u", entry[0]);
	}
	return 8;
}

START_TEST(table_lists_every_vcpu)
{
	for (unsigned vcpus = 1; vcpus <= GUEST_VCPUS_MAX; vcpus++) {
		const uint8_t *table = area + 16;
		struct contents contents = {0};
		size_t offset = 44;

		memset(area, 0, sizeof(area));
		mptable_write(area, (gpa_t){BASE}, vcpus);
		ck_assert_mem_eq(area, "_MP_", 4);
		ck_assert_uint_eq(get(area + 4, 4), BASE + 16);
		assert_sum_is_zero(area, 16);
		ck_assert_mem_eq(table, "PCMP", 4);
		ck_assert_uint_eq(get(table + 36, 4), BOOT_LAPIC_GPA);
		while (offset < get(table + 4, 2))
			offset += entry_read(&contents, table + offset);
		ck_assert_uint_eq(offset, get(table + 4, 2));
		assert_sum_is_zero(table, offset);
		ck_assert_uint_eq(contents.entries, get(table + 34, 2));
		ck_assert_uint_eq(contents.processors, vcpus);
		ck_assert_uint_eq(contents.ioapic_id, vcpus);
		ck_assert_uint_eq(contents.buses, 1);
		ck_assert_uint_eq(contents.ioapics, 1);
		ck_assert_uint_eq(contents.interrupts, 15);
		ck_assert_uint_eq(contents.local_interrupts, 2);
		ck_assert_uint_eq(contents.pin_of_irq[0], 2);
		ck_assert_uint_eq(contents.pin_of_irq[2], 0);
		ck_assert_uint_eq(contents.pin_of_irq[3], 3);
		ck_assert_uint_eq(contents.pin_of_irq[4], 4);
		ck_assert_uint_eq(contents.pin_of_irq[15], 15);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mptable");
	TCase *tests = tcase_create("mptable");

	tcase_add_test(tests, table_lists_every_vcpu);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
