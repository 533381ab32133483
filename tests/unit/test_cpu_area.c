// SPDX-License-Identifier: BSD-2-Clause
/* The per-CPU areas of a kernel in memory laid out by hand. */
#include <check.h>

#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/cpu_area.h"
#include "run_suite.h"

#define MEMORY UINT64_C(0xffff888000000000) /* maps the fake guest's RAM */
#define OFFSETS UINT64_C(0x4000)
#define AREA(i) (UINT64_C(0x5000) + (i)*UINT64_C(0x1000))
#define DIRECT_MAP UINT64_C(0xffff9a0000000000)

static const struct cpu_area_layout layout = {
	.offsets = MEMORY + OFFSETS,
	.this_cpu_off = 0x168,
	.apic_id = 0x20,
	.apic_id_bytes = sizeof(uint16_t),
	.direct_map = MEMORY + 0x3000,
};

static struct fake_guest fake;
static struct page_walk walk;
static struct os_area areas[4];

/* Three processors of two threads' numbering: 0, 2, 4. */
static void setup(void)
{
	fake_guest_init(&fake);
	uint64_t cr3 = fake_table_new(&fake);

	fake_map(&fake, cr3, 4, MEMORY, 0, 2);
	page_walk_init(&walk, &fake.guest, cr3, false);
	for (unsigned i = 0; i < 3; i++) {
		fake_write(&fake, OFFSETS + 8 * i, MEMORY + AREA(i));
		fake_write(&fake, AREA(i) + layout.this_cpu_off, MEMORY + AREA(i));
		fake_write(&fake, AREA(i) + layout.apic_id, 0xabcd0000u | 2 * i);
	}
	fake_write(&fake, 0x3000, DIRECT_MAP);
}

START_TEST(processors_by_their_apic_id)
{
	ck_assert_uint_eq(cpu_areas_read(&layout, &walk, areas, G_N_ELEMENTS(areas)), 3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(areas[i].area, MEMORY + AREA(i));
		ck_assert_uint_eq(areas[i].apic_id, 2 * i);
	}
	ck_assert_uint_eq(cpu_areas_read(&layout, &walk, areas, 2), 2);
}
END_TEST

START_TEST(an_apic_id_of_four_bytes)
{
	struct cpu_area_layout wide = layout;

	wide.apic_id_bytes = sizeof(uint32_t);
	fake_write(&fake, AREA(1) + wide.apic_id, 0x10001);
	ck_assert_uint_eq(cpu_areas_read(&wide, &walk, areas, G_N_ELEMENTS(areas)), 3);
	ck_assert_uint_eq(areas[1].apic_id, 0x10001);
}
END_TEST

/* Before the kernel has set them up, all lead to the one in its image. */
START_TEST(an_area_that_does_not_name_itself)
{
	fake_write(&fake, AREA(1) + layout.this_cpu_off, MEMORY + AREA(0));
	ck_assert_uint_eq(cpu_areas_read(&layout, &walk, areas, G_N_ELEMENTS(areas)), 1);
	fake_write(&fake, OFFSETS, 0x1000);
	ck_assert_uint_eq(cpu_areas_read(&layout, &walk, areas, G_N_ELEMENTS(areas)), 0);
}
END_TEST

START_TEST(the_map_of_all_memory)
{
	struct cpu_area_layout without = layout;

	ck_assert_uint_eq(cpu_area_direct_map(&layout, &walk), DIRECT_MAP);
	without.direct_map = 0;
	ck_assert_uint_eq(cpu_area_direct_map(&without, &walk), UINT64_C(0xffff888000000000));
	walk.tables.la57 = true;
	ck_assert_uint_eq(cpu_area_direct_map(&without, &walk), UINT64_C(0xff11000000000000));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cpu_area");
	TCase *tc = tcase_create("read");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, processors_by_their_apic_id);
	tcase_add_test(tc, an_apic_id_of_four_bytes);
	tcase_add_test(tc, an_area_that_does_not_name_itself);
	tcase_add_test(tc, the_map_of_all_memory);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
