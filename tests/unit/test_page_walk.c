// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>

#include "fake_guest_memory.h"
#include "guest/page_walk.h"
#include "guest/x86/page_tables_x86.h"
#include "run_suite.h"

static struct fake_guest fake;
static uint64_t root;

static void setup(void)
{
	fake_guest_init(&fake);
	root = fake_table_new(&fake);
}

static bool translate(bool la57, uint64_t gva, uint64_t *gpa)
{
	struct page_walk walk;
	gpa_t to;

	page_walk_init(&walk, &fake.guest, root, la57);
	if (!page_walk_translate(&walk, (gva_t){gva}, &to))
		return false;
	*gpa = to.value;
	return true;
}

static const struct {
	uint64_t gva;
	uint64_t gpa; /* of the page */
	unsigned leaf_level;
} mappings[] = {
	{UINT64_C(0x00007f1234567000), 0x3000, 1},
	{UINT64_C(0xffffffff81000000), UINT64_C(0x40000000), 2},
	{UINT64_C(0xffff888000000000), 0, 3},
	{UINT64_C(0x0000000000400000), UINT64_C(0xfffffffff000), 1},
	{UINT64_C(0xffffffffffe00000), UINT64_C(0x200000), 2},
};

START_TEST(each_page_size_translates)
{
	bool la57 = _i != 0;

	for (size_t i = 0; i < G_N_ELEMENTS(mappings); i++)
		fake_map(&fake, root, la57 ? 5 : 4, mappings[i].gva, mappings[i].gpa, mappings[i].leaf_level);
	for (size_t i = 0; i < G_N_ELEMENTS(mappings); i++) {
		uint64_t last = (UINT64_C(4096) << 9 * (mappings[i].leaf_level - 1)) - 1;
		uint64_t gpa;

		ck_assert(translate(la57, mappings[i].gva, &gpa));
		ck_assert_uint_eq(gpa, mappings[i].gpa);
		ck_assert(translate(la57, mappings[i].gva + last, &gpa));
		ck_assert_uint_eq(gpa, mappings[i].gpa + last);
	}
}
END_TEST

START_TEST(five_levels_reach_beyond_47_bits)
{
	uint64_t gva = UINT64_C(0x00ab000000001000), gpa;

	fake_map(&fake, root, 5, gva, 0x5000, 1);
	ck_assert(translate(true, gva + 8, &gpa));
	ck_assert_uint_eq(gpa, 0x5008);
	ck_assert(!translate(false, gva, &gpa));
}
END_TEST

START_TEST(not_canonical_is_not_walked)
{
	static const uint64_t four[] = {UINT64_C(0x0000800000000000), UINT64_C(0xffff000000000000), UINT64_C(1) << 63};
	static const uint64_t five[] = {UINT64_C(0x0100000000000000), UINT64_C(0xfe00000000000000), UINT64_C(1) << 63};
	uint64_t gpa;

	for (size_t i = 0; i < G_N_ELEMENTS(four); i++) {
		ck_assert(!translate(false, four[i], &gpa));
		ck_assert(!translate(true, five[i], &gpa));
	}
	ck_assert_uint_eq(fake.reads, 0);
}
END_TEST

START_TEST(absent_entries_and_tables_outside_ram)
{
	uint64_t gva = UINT64_C(0xffffc90000001000), gpa;
	uint64_t leaf = fake_map(&fake, root, 4, gva, 0x3000, 1);

	ck_assert(translate(false, gva, &gpa));
	fake_write(&fake, leaf, 0x3000);
	ck_assert(!translate(false, gva, &gpa));
	fake_write(&fake, root + (gva >> 39 & 511) * 8, UINT64_C(0x000ffffffffff007));
	ck_assert(!translate(false, gva, &gpa));
}
END_TEST

START_TEST(a_table_that_is_its_own_ends_after_its_levels)
{
	uint64_t gpa;

	for (unsigned i = 0; i < 512; i++)
		fake_write(&fake, root + i * 8, root | 7);
	ck_assert(translate(false, 0x1234, &gpa));
	ck_assert_uint_eq(gpa, root | 0x234);
	ck_assert_uint_eq(fake.reads, 4);
}
END_TEST

START_TEST(reads_cross_pages_and_stop_at_holes)
{
	struct page_walk walk;
	uint8_t bytes[16];

	fake_map(&fake, root, 4, 0x7000, 0x3000, 1);
	fake_map(&fake, root, 4, 0x8000, 0x5000, 1);
	for (unsigned i = 0; i < 8; i++) {
		fake.ram[0x3ff8 + i] = (uint8_t)i;
		fake.ram[0x5000 + i] = (uint8_t)(8 + i);
	}
	page_walk_init(&walk, &fake.guest, root, false);
	ck_assert(page_walk_read(&walk, (gva_t){0x7ff8}, bytes, sizeof(bytes)));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		ck_assert_uint_eq(bytes[i], i);
	ck_assert(!page_walk_read(&walk, (gva_t){0x8ff8}, bytes, sizeof(bytes)));
	ck_assert(!page_walk_read(&walk, (gva_t){UINT64_MAX - 3}, bytes, sizeof(bytes)));
}
END_TEST

START_TEST(a_second_read_of_a_page_does_not_walk_again)
{
	struct page_walk walk;
	uint64_t word;

	fake_map(&fake, root, 4, 0x7000, 0x3000, 1);
	page_walk_init(&walk, &fake.guest, root, false);
	ck_assert(page_walk_read(&walk, (gva_t){0x7000}, &word, sizeof(word)));
	ck_assert_uint_eq(fake.reads, 5);
	ck_assert(page_walk_read(&walk, (gva_t){0x7100}, &word, sizeof(word)));
	ck_assert_uint_eq(fake.reads, 6);
}
END_TEST

START_TEST(all_of_a_large_page_is_remembered)
{
	const uint64_t large = UINT64_C(0xffff888000200000);
	struct page_walk walk;
	uint64_t word;

	fake_map(&fake, root, 4, large, 0, 2);
	page_walk_init(&walk, &fake.guest, root, false);
	fake_write(&fake, 0x5008, 0x1234);
	ck_assert(page_walk_read(&walk, (gva_t){large + 0x1000}, &word, sizeof(word)));
	ck_assert_uint_eq(fake.reads, 4);
	ck_assert(page_walk_read(&walk, (gva_t){large + 0x5008}, &word, sizeof(word)));
	ck_assert_uint_eq(fake.reads, 5);
	ck_assert_uint_eq(word, 0x1234);
	ck_assert(!page_walk_read(&walk, (gva_t){large + 0x200000}, &word, sizeof(word)));
	ck_assert(!page_walk_read(&walk, (gva_t){large - 8}, &word, sizeof(word)));
}
END_TEST

/* Up to the end of the page; what is beyond, or cannot be read, is read as ever. */
START_TEST(what_is_read_ahead_is_not_read_again)
{
	uint8_t buffer[PAGE_WALK_AHEAD_BYTES];
	struct page_walk walk;
	uint64_t word;
	unsigned reads;

	fake_map(&fake, root, 4, 0x7000, 0x3000, 1);
	fake_map(&fake, root, 4, 0x8000, 0x4000, 1);
	fake_write(&fake, 0x3ff8, 0x1234);
	fake_write(&fake, 0x3ff0, 0x5678);
	page_walk_init(&walk, &fake.guest, root, false);
	page_walk_read_ahead(&walk, (gva_t){0x7ff4}, buffer);
	reads = fake.reads;
	fake_write(&fake, 0x3ff8, 0);
	ck_assert(page_walk_read(&walk, (gva_t){0x7ff8}, &word, sizeof(word)));
	ck_assert_uint_eq(word, 0x1234);
	ck_assert_uint_eq(fake.reads, reads);
	ck_assert(page_walk_read(&walk, (gva_t){0x7ff0}, &word, sizeof(word)));
	ck_assert_uint_eq(word, 0x5678);
	ck_assert(page_walk_read(&walk, (gva_t){0x7ffc}, &word, sizeof(word)));
	ck_assert_uint_gt(fake.reads, reads);
	page_walk_init(&walk, &fake.guest, root, false);
	page_walk_read_ahead(&walk, (gva_t){0x9000}, buffer);
	ck_assert(page_walk_read(&walk, (gva_t){0x7ff8}, &word, sizeof(word)));
	ck_assert_uint_eq(word, 0);
	ck_assert(!page_walk_read(&walk, (gva_t){0x9000}, &word, sizeof(word)));
}
END_TEST

/* Loop tests: each size of pages by four levels, then by five. */
#define SIZES 3

/* The page at the end of the address space has a last byte, and none after it; at its start, none before it. */
START_TEST(pages_of_each_size_at_both_ends)
{
	const unsigned levels = 4 + (unsigned)_i / SIZES, size = 1 + (unsigned)_i % SIZES;
	const uint64_t bytes = UINT64_C(4096) << 9 * (size - 1);
	const uint64_t firsts[] = {0, -bytes};
	uint8_t data[16];

	fake_map(&fake, root, levels, firsts[0], 0, size);
	fake_map(&fake, root, levels, firsts[1], 0, size);
	for (size_t i = 0; i < G_N_ELEMENTS(firsts); i++) {
		const uint64_t first = firsts[i], last = first + (bytes - 1);
		struct page_leaf leaf;
		struct page_walk walk;

		page_walk_init(&walk, &fake.guest, root, levels == 5);
		ck_assert(page_walk_leaf(&walk, (gva_t){last}, &leaf));
		ck_assert_uint_eq(leaf.page.first, first);
		ck_assert_uint_eq(leaf.page.bytes, bytes);
		ck_assert_uint_eq(gva_range_left(leaf.page, last), 1);
		ck_assert_uint_eq(page_leaf_gpa(&leaf, last).value, bytes - 1);
		ck_assert(page_walk_read(&walk, (gva_t){first}, data, sizeof(data)));
		ck_assert_uint_eq(page_walk_read(&walk, (gva_t){last - 15}, data, sizeof(data)), size == 1);
		ck_assert(!page_walk_read(&walk, (gva_t){last - 14}, data, sizeof(data)));
		/* Before the first page is the last one. */
		ck_assert_int_eq(page_walk_leaf(&walk, (gva_t){first - 1}, &leaf), i == 0);
	}
}
END_TEST

START_TEST(ranges_end_where_addresses_do)
{
	const struct gva_range top = gva_range_cut(UINT64_MAX - 4095, UINT64_MAX), none = gva_range_to(8, 8);

	ck_assert_uint_eq(top.bytes, 4096);
	ck_assert_uint_eq(gva_room(0), UINT64_MAX);
	ck_assert_uint_eq(gva_room(UINT64_MAX), 1);
	ck_assert(gva_range_has(top, UINT64_MAX));
	ck_assert(!gva_range_has(top, 0));
	ck_assert(!gva_range_has(none, 8));
	ck_assert_uint_eq(gva_range_to(8, 7).bytes, 0);
	ck_assert(gva_range_holds(top, gva_range_cut(UINT64_MAX - 7, 100)));
	ck_assert(!gva_range_holds(top, (struct gva_range){UINT64_MAX - 7, 100}));
	ck_assert(!gva_range_holds(top, (struct gva_range){UINT64_MAX - 4096, 2}));
	ck_assert(gva_range_meets((struct gva_range){8, 8}, 16));
	ck_assert(!gva_range_meets(top, 0));
	ck_assert(!gva_range_meets(none, 8));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("page walk");
	TCase *tcase = tcase_create("page walk");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_loop_test(tcase, each_page_size_translates, 0, 2);
	tcase_add_test(tcase, five_levels_reach_beyond_47_bits);
	tcase_add_test(tcase, not_canonical_is_not_walked);
	tcase_add_test(tcase, absent_entries_and_tables_outside_ram);
	tcase_add_test(tcase, a_table_that_is_its_own_ends_after_its_levels);
	tcase_add_test(tcase, reads_cross_pages_and_stop_at_holes);
	tcase_add_test(tcase, a_second_read_of_a_page_does_not_walk_again);
	tcase_add_test(tcase, all_of_a_large_page_is_remembered);
	tcase_add_test(tcase, what_is_read_ahead_is_not_read_again);
	tcase_add_loop_test(tcase, pages_of_each_size_at_both_ends, 0, 2 * SIZES);
	tcase_add_test(tcase, ranges_end_where_addresses_do);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
