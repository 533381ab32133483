// SPDX-License-Identifier: BSD-2-Clause
/* Files by their names, among inodes in memory of two file systems. */
#include <check.h>

#include "fake_inodes.h"
#include "run_suite.h"

static struct fake_guest fake;
static struct page_walk walk;
static const char *why;
static bool (*quick_read)(struct guest *guest, gpa_t from, void *to, size_t bytes);

static uint64_t find(const char *name)
{
	return inode_find(&fake_inode_layout, &walk, name, &why);
}

static void setup(void)
{
	fake_inodes_init(&fake, &walk);
}

START_TEST(each_by_its_whole_name)
{
	ck_assert_uint_eq(find("perf-1.map"), FAKE_MAPPING(0));
	ck_assert_uint_eq(find("perf-12.map"), FAKE_MAPPING(2));
	ck_assert_uint_eq(find("libc.so.6"), FAKE_MAPPING(3));
	ck_assert_uint_eq(find("perf-2.map"), 0);
	ck_assert_uint_eq(find(""), 0);
}
END_TEST

START_TEST(a_broken_list_hides_its_own_only)
{
	fake_write(&fake, FAKE_INODE(4) + fake_inode_layout.list, FAKE_INODES_MEMORY + FAKE_RAM_BYTES);
	ck_assert_uint_eq(find("perf-1.map"), 0);
	ck_assert_uint_eq(find("perf-12.map"), FAKE_MAPPING(2));
	fake_write(&fake, FAKE_SUPER_BLOCKS, 0);
	ck_assert_uint_eq(find("perf-12.map"), 0);
}
END_TEST

START_TEST(a_loop_ends)
{
	const int64_t begin_us = g_get_monotonic_time();

	fake_write(&fake, FAKE_INODE(3) + fake_inode_layout.list,
	           FAKE_INODES_MEMORY + FAKE_INODE(3) + fake_inode_layout.list);
	fake.reads = 0;
	ck_assert_uint_eq(find("perf-12.map"), 0);
	ck_assert_uint_le(fake.reads, 3 * 40 * INODES_MAX);
	fake_write(&fake, FAKE_SUPER_BLOCK(0) + fake_inode_layout.sb_list,
	           FAKE_INODES_MEMORY + FAKE_SUPER_BLOCK(0) + fake_inode_layout.sb_list);
	ck_assert_uint_eq(find("perf-12.map"), 0);
	ck_assert_int_lt(g_get_monotonic_time() - begin_us, 3 * INODE_FIND_US_MAX);
}
END_TEST

/* As where each read of its memory is a system call. */
static bool slow_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	g_usleep(200);
	return quick_read(guest, from, to, bytes);
}

START_TEST(a_slow_guest_is_given_up)
{
	quick_read = fake.guest.ops->memory_read;
	const int64_t begin_us = g_get_monotonic_time();
	struct guest_ops slow = *fake.guest.ops;

	slow.memory_read = slow_read;
	fake.guest.ops = &slow;
	fake_write(&fake, FAKE_INODE(3) + fake_inode_layout.list,
	           FAKE_INODES_MEMORY + FAKE_INODE(3) + fake_inode_layout.list);
	ck_assert_uint_eq(find("perf-12.map"), 0);
	ck_assert_str_eq(why, "the guest has more files in memory than can be looked at in half a second");
	ck_assert_int_lt(g_get_monotonic_time() - begin_us, 8 * INODE_FIND_US_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inode_find");
	TCase *tests = tcase_create("inode_find");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, each_by_its_whole_name);
	tcase_add_test(tests, a_broken_list_hides_its_own_only);
	tcase_add_test(tests, a_loop_ends);
	tcase_add_test(tests, a_slow_guest_is_given_up);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
