// SPDX-License-Identifier: BSD-2-Clause
/* Pages of a file in a guest's page cache that is laid out by hand: small and large folios, and what must not be read.
 */
#include <check.h>

#include "fake_page_cache.h"
#include "run_suite.h"
#include "sample/file_places.h"

#define PAGE UINT64_C(0x70000) /* guest physical */

static struct fake_process process;
static struct page_cache cache;
static uint8_t page[PAGE_CACHE_PAGE_BYTES];

static void setup(void)
{
	fake_process_init(&process);
	fake_cache_init(&process, 0x123456);
	for (unsigned i = 0; i < 8; i++)
		memset(process.fake.ram + PAGE + i * 4096, 'a' + (int)i, 4096);
}

static void root_set(uint64_t entry)
{
	fake_set(&process, FAKE_MAPPING, fake_cache_layout.mapping_root, entry);
}

/* The letter that fills page `number`; '-' when it cannot be read. */
static char letter(uint64_t number)
{
	uint64_t bytes;

	ck_assert(page_cache_open(&cache, &fake_cache_layout, &process.walk, FAKE_MAPPING, &bytes));
	ck_assert_uint_eq(bytes, 0x123456);
	return page_cache_read(&cache, number, page) && page[0] == page[4095] ? (char)page[0] : '-';
}

START_TEST(a_file_of_one_page)
{
	root_set(fake_folio(&process, PAGE, 0));
	ck_assert_int_eq(letter(0), 'a');
	ck_assert_int_eq(letter(1), '-');
	root_set(0);
	ck_assert_int_eq(letter(0), '-');
}
END_TEST

/* Pages 3 and 64 + 5, of which the second is of a node of its own; the same cache is asked for both. */
START_TEST(pages_in_two_levels)
{
	uint64_t top = fake_cache_node(&process, 6), first = fake_cache_node(&process, 0);
	uint64_t second = fake_cache_node(&process, 0), bytes;

	fake_cache_slot(&process, top, 0, first);
	fake_cache_slot(&process, top, 1, second);
	fake_cache_slot(&process, first, 3, fake_folio(&process, PAGE, 3));
	fake_cache_slot(&process, second, 5, fake_folio(&process, PAGE + 4096, 69));
	root_set(top);
	ck_assert(page_cache_open(&cache, &fake_cache_layout, &process.walk, FAKE_MAPPING, &bytes));
	for (unsigned round = 0; round < 2; round++) {
		ck_assert(page_cache_read(&cache, 3, page) && page[0] == 'a');
		ck_assert(!page_cache_read(&cache, 4, page));
		ck_assert(page_cache_read(&cache, 69, page) && page[0] == 'b');
		ck_assert(!page_cache_read(&cache, 5, page));
	}
	ck_assert_int_eq(letter(64 * 64), '-');
	ck_assert_int_eq(letter(UINT64_MAX >> 12), '-');
}
END_TEST

/* Four pages from page 4 on: the slots behind the first name it. And 64, which are a slot of the upper node. */
START_TEST(large_folios)
{
	uint64_t top = fake_cache_node(&process, 6), leaf = fake_cache_node(&process, 0);

	fake_cache_slot(&process, top, 0, leaf);
	fake_cache_slot(&process, leaf, 4, fake_folio(&process, PAGE, 4));
	for (unsigned i = 5; i < 8; i++)
		fake_cache_slot(&process, leaf, i, 4 << 2 | 2);
	fake_cache_slot(&process, top, 2, fake_folio(&process, PAGE + 4 * 4096, 128));
	root_set(top);
	ck_assert_int_eq(letter(4), 'a');
	ck_assert_int_eq(letter(7), 'd');
	ck_assert_int_eq(letter(8), '-');
	ck_assert_int_eq(letter(128), 'e');
	ck_assert_int_eq(letter(131), 'h');
}
END_TEST

static const struct refused {
	const char *what;
	uint32_t member;
	uint64_t value;
} refused[] = {
	{"it is being read in", 0, 1},
	{"it is of another file", 0x18, FAKE_MAPPING + 64},
	{"it is another page", 0x20, 1},
};

START_TEST(a_page_that_is_not_the_files_is_refused)
{
	uint64_t folio = fake_folio(&process, PAGE, 0);

	root_set(folio);
	ck_assert_int_eq(letter(0), 'a');
	fake_set(&process, folio, refused[_i].member, refused[_i].value);
	ck_assert_msg(letter(0) == '-', "%s", refused[_i].what);
}
END_TEST

START_TEST(what_lies_is_refused)
{
	uint64_t node = fake_cache_node(&process, 0), same = fake_cache_node(&process, 6), bytes;

	/* values (swapped out), markers, addresses outside of the array or between two entries of it */
	const uint64_t entries[] = {0x1001, 0x102, FAKE_CACHE + 0x20, FAKE_CACHE - 64, FAKE_KERNEL | 3, 64};

	for (size_t i = 0; i < G_N_ELEMENTS(entries); i++) {
		root_set(entries[i]);
		ck_assert_msg(letter(0) == '-', "entry %zu", i);
	}
	/* A page outside of the guest's memory. */
	root_set(fake_folio(&process, FAKE_RAM_BYTES, 0));
	ck_assert_int_eq(letter(0), '-');
	/* A node below itself, and one whose slots name each other. */
	fake_cache_slot(&process, same, 0, same);
	root_set(same);
	ck_assert_int_eq(letter(0), '-');
	fake_cache_slot(&process, node, 0, 1 << 2 | 2);
	fake_cache_slot(&process, node, 1, 0 << 2 | 2);
	root_set(node);
	ck_assert_int_eq(letter(0), '-');
	fake_set(&process, node - 2, fake_cache_layout.node_shift, 5);
	ck_assert_int_eq(letter(0), '-');
	ck_assert(!page_cache_open(&cache, &fake_cache_layout, &process.walk, 0x1000, &bytes));
	fake_set(&process, FAKE_INODE, fake_cache_layout.inode_size, UINT64_MAX);
	ck_assert(!page_cache_open(&cache, &fake_cache_layout, &process.walk, FAKE_MAPPING, &bytes));
}
END_TEST

START_TEST(places_by_build_id)
{
	static struct file_places places;
	uint8_t build_id[20] = {1};

	ck_assert_uint_eq(file_places_find(&places, build_id, 20), 0);
	file_places_note(&places, build_id, 20, 0x1000);
	ck_assert_uint_eq(file_places_find(&places, build_id, 20), 0x1000);
	ck_assert_uint_eq(file_places_find(&places, build_id, 8), 0);
	file_places_note(&places, build_id, 20, 0x2000);
	ck_assert_uint_eq(file_places_find(&places, build_id, 20), 0x2000);
	for (unsigned i = 1; i < FILE_PLACES_MAX + 10; i++) {
		memcpy(build_id + 8, &i, sizeof(i));
		file_places_note(&places, build_id, 20, i);
		ck_assert_uint_eq(file_places_find(&places, build_id, 20), i < FILE_PLACES_MAX ? i : 0);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("page_cache");
	TCase *tests = tcase_create("tests");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, a_file_of_one_page);
	tcase_add_test(tests, pages_in_two_levels);
	tcase_add_test(tests, large_folios);
	tcase_add_loop_test(tests, a_page_that_is_not_the_files_is_refused, 0, G_N_ELEMENTS(refused));
	tcase_add_test(tests, what_lies_is_refused);
	tcase_add_test(tests, places_by_build_id);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
