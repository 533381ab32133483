// SPDX-License-Identifier: BSD-2-Clause
/* Files by their names, among inodes in memory laid out by hand: two file systems with three and two of them. */
#include <check.h>

#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/inode_find.h"
#include "run_suite.h"

#define MEMORY UINT64_C(0xffff888000000000)
#define SUPER_BLOCKS UINT64_C(0x20000)
#define SUPER_BLOCK(i) (UINT64_C(0x21000) + (i)*UINT64_C(0x100))
#define INODE(i) (UINT64_C(0x30000) + (i)*UINT64_C(0x100))
#define DENTRY(i) (UINT64_C(0x40000) + (i)*UINT64_C(0x100))
#define MAPPING(i) (MEMORY + 0x50000 + (i))

static const struct inode_layout layout = {
	.super_blocks = MEMORY + SUPER_BLOCKS,
	.sb_list = 0x10,
	.sb_inodes = 0x40,
	.list = 0x20,
	.dentries = 0x30,
	.mapping = 0x38,
	.alias = 0x50,
	.name = 0x18,
	.name_length = 4,
	.name_text = 8,
};

static struct fake_guest fake;
static struct page_walk walk;
static const char *why;
static bool (*quick_read)(struct guest *guest, gpa_t from, void *to, size_t bytes);

static void ring(const uint64_t *heads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fake_write(&fake, heads[i], MEMORY + heads[(i + 1) % n]);
}

static void inode_make(unsigned i, const char *name)
{
	const uint32_t length = name ? (uint32_t)strlen(name) : 0;

	fake_write(&fake, INODE(i) + layout.mapping, MAPPING(i));
	fake_write(&fake, INODE(i) + layout.dentries, name ? MEMORY + DENTRY(i) + layout.alias : 0);
	memcpy(fake.ram + DENTRY(i) + layout.name + layout.name_length, &length, sizeof(length));
	fake_write(&fake, DENTRY(i) + layout.name + layout.name_text, MEMORY + DENTRY(i) + 0x80);
	if (name)
		memcpy(fake.ram + DENTRY(i) + 0x80, name, length);
}

static void setup(void)
{
	static const char *const names[] = {"perf-1.map", NULL, "perf-12.map", "libc.so.6", "perf-12.mapx"};

	fake_guest_init(&fake);
	const uint64_t cr3 = fake_table_new(&fake);

	fake_map(&fake, cr3, 4, MEMORY, 0, 2);
	page_walk_init(&walk, &fake.guest, cr3, false);
	for (unsigned i = 0; i < G_N_ELEMENTS(names); i++)
		inode_make(i, names[i]);
	ring((uint64_t[]){SUPER_BLOCKS, SUPER_BLOCK(0) + layout.sb_list, SUPER_BLOCK(1) + layout.sb_list}, 3);
	ring((uint64_t[]){SUPER_BLOCK(0) + layout.sb_inodes, INODE(4) + layout.list, INODE(0) + layout.list,
	                  INODE(1) + layout.list},
	     4);
	ring((uint64_t[]){SUPER_BLOCK(1) + layout.sb_inodes, INODE(3) + layout.list, INODE(2) + layout.list}, 3);
}

START_TEST(each_by_its_whole_name)
{
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-1.map", &why), MAPPING(0));
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-12.map", &why), MAPPING(2));
	ck_assert_uint_eq(inode_find(&layout, &walk, "libc.so.6", &why), MAPPING(3));
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-2.map", &why), 0);
	ck_assert_uint_eq(inode_find(&layout, &walk, "", &why), 0);
}
END_TEST

START_TEST(a_broken_list_hides_its_own_only)
{
	fake_write(&fake, INODE(4) + layout.list, MEMORY + FAKE_RAM_BYTES);
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-1.map", &why), 0);
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-12.map", &why), MAPPING(2));
	fake_write(&fake, SUPER_BLOCKS, 0);
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-12.map", &why), 0);
}
END_TEST

START_TEST(a_loop_ends)
{
	const int64_t begin_us = g_get_monotonic_time();

	fake_write(&fake, INODE(3) + layout.list, MEMORY + INODE(3) + layout.list);
	fake.reads = 0;
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-12.map", &why), 0);
	ck_assert_uint_le(fake.reads, 3 * 40 * INODES_MAX);
	fake_write(&fake, SUPER_BLOCK(0) + layout.sb_list, MEMORY + SUPER_BLOCK(0) + layout.sb_list);
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-12.map", &why), 0);
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
	fake_write(&fake, INODE(3) + layout.list, MEMORY + INODE(3) + layout.list);
	ck_assert_uint_eq(inode_find(&layout, &walk, "perf-12.map", &why), 0);
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
