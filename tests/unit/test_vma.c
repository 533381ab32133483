// SPDX-License-Identifier: BSD-2-Clause
/* Maple trees of every kind of node, mappings in trees and lists, the names of their files and build-ids. */
#include <check.h>

#include "fake_process.h"
#include "guest/elf_note.h"
#include "linux/maple.h"
#include "run_suite.h"

static struct fake_process process;

static void setup(void)
{
	fake_process_init(&process);
}

/* Maple trees. "first-last=entry ..." in hexadecimal. */

static bool entry_print(uint64_t first, uint64_t last, uint64_t entry, void *data)
{
	GString *text = data;

	g_string_append_printf(text, "%lx-%lx=%lx ", (unsigned long)first, (unsigned long)last, (unsigned long)entry);
	return text->len < 4096;
}

static void assert_tree(uint64_t root, const char *expected)
{
	g_autoptr(GString) text = g_string_new(NULL);

	ck_assert(maple_each(&process.walk, root, entry_print, text));
	ck_assert_str_eq(text->str, expected);
}

static void assert_damaged(uint64_t root)
{
	g_autoptr(GString) text = g_string_new(NULL);

	ck_assert(!maple_each(&process.walk, root, entry_print, text));
}

START_TEST(an_empty_tree_and_one_of_a_single_entry)
{
	assert_tree(0, "");
	assert_tree(FAKE_KERNEL, "0-0=ffff888000000000 ");
	assert_tree(0x402, ""); /* a marker */
}
END_TEST

START_TEST(a_leaf_ends_where_its_pivots_do)
{
	uint64_t leaf = fake_node(&process, 1, true);

	fake_node_slot(&process, leaf, 0, 0xfff, 0);
	fake_node_slot(&process, leaf, 1, 0x1fff, 0x100);
	fake_node_slot(&process, leaf, 2, 0x2fff, 0x200);
	fake_node_slot(&process, leaf, 3, 0, 0x300);     /* the last in use, its pivot unsaid */
	fake_node_slot(&process, leaf, 4, 0x99, 0xdead); /* left over */
	assert_tree(leaf, "1000-1fff=100 2000-2fff=200 3000-ffffffffffffffff=300 ");
	fake_node_slot(&process, leaf, 3, UINT64_MAX, 0x300); /* and said */
	assert_tree(leaf, "1000-1fff=100 2000-2fff=200 3000-ffffffffffffffff=300 ");
}
END_TEST

START_TEST(a_full_leaf_has_a_slot_more_than_pivots)
{
	uint64_t leaf = fake_node(&process, 1, true);
	g_autoptr(GString) expected = g_string_new(NULL);

	for (unsigned i = 0; i < 16; i++) {
		fake_node_slot(&process, leaf, i, i * 16 + 15, 0x1000 + i * 4);
		if (i < 15)
			g_string_append_printf(expected, "%x-%x=%x ", i * 16, i * 16 + 15, 0x1000 + i * 4);
	}
	g_string_append(expected, "f0-ffffffffffffffff=103c ");
	assert_tree(leaf, expected->str);
}
END_TEST

START_TEST(a_dense_node_has_one_index_a_slot)
{
	uint64_t dense = fake_node(&process, 0, true);

	fake_node_slot(&process, dense, 0, 0, 0x100);
	fake_node_slot(&process, dense, 2, 0, 0x300);
	assert_tree(dense, "0-0=100 2-2=300 ");
}
END_TEST

/* Both kinds of inner nodes, as one over the other; a process has the second kind. */
START_TEST(inner_nodes_hand_their_range_down)
{
	uint64_t root = fake_node(&process, 3, true), inner = fake_node(&process, 2, false);
	uint64_t left = fake_node(&process, 1, false), right = fake_node(&process, 1, false);

	fake_node_slot(&process, root, 0, 0xffff, left);
	fake_node_slot(&process, root, 1, UINT64_MAX, inner);
	fake_node_slot(&process, inner, 0, 0x1ffff, right);
	fake_node_slot(&process, inner, 1, UINT64_MAX, 0);
	fake_node_slot(&process, left, 0, 0xfff, 0x100);
	fake_node_slot(&process, left, 1, 0xffff, 0x200);
	fake_node_slot(&process, right, 0, 0x10fff, 0);
	fake_node_slot(&process, right, 1, 0x1ffff, 0x300);
	assert_tree(root, "0-fff=100 1000-ffff=200 11000-1ffff=300 ");
}
END_TEST

START_TEST(damaged_trees_end)
{
	uint64_t itself = fake_node(&process, 2, true), backwards = fake_node(&process, 1, true);

	fake_node_slot(&process, itself, 0, UINT64_MAX, (itself & ~UINT64_C(2)) | 4);
	assert_damaged(itself);
	/* Wide and deep: not more nodes than are allowed. */
	for (unsigned i = 0; i < 16; i++)
		fake_node_slot(&process, itself, i, (i + 1) << 20, (itself & ~UINT64_C(2)) | 4);
	process.fake.reads = 0;
	assert_damaged(itself);
	ck_assert_uint_le(process.fake.reads, 8 * MAPLE_NODES_MAX);
	fake_node_slot(&process, backwards, 0, 0xffff, 0x100);
	fake_node_slot(&process, backwards, 1, 0xff, 0x200);
	fake_node_slot(&process, backwards, 2, UINT64_MAX, 0x300);
	assert_tree(backwards, "0-ffff=100 ");
	assert_damaged(FAKE_KERNEL | 5 << 3 | 2); /* a type that there is not */
	assert_damaged(UINT64_C(0xffff900000000000) | 1 << 3 | 2);
	assert_damaged(0x12345602);
}
END_TEST

/* Mappings. */

static bool vma_print(const struct os_mapping *vma, void *data)
{
	g_string_append_printf(data, "%lx-%lx+%lx%s%s ", (unsigned long)vma->start, (unsigned long)vma->end,
	                       (unsigned long)vma->file_offset, vma->executable ? "x" : "", vma->file != 0 ? "f" : "");
	return true;
}

static bool vmas_are(const struct vma_layout *layout, uint64_t mm, const char *expected)
{
	g_autoptr(GString) text = g_string_new(NULL);
	bool all = vma_each(layout, &process.walk, mm, vma_print, text);

	ck_assert_str_eq(text->str, expected);
	return all;
}

START_TEST(mappings_come_from_the_tree)
{
	uint64_t mm = fake_object(&process, 256), leaf = fake_node(&process, 1, true);
	uint64_t head = fake_vma(&process, 0x400000, 0x401000, 0, FAKE_KERNEL, false);
	uint64_t text = fake_vma(&process, 0x401000, 0x480000, 1, FAKE_KERNEL, true);
	uint64_t moved = fake_vma(&process, 0x900000, 0x901000, 0, 0, true); /* freed, and used elsewhere */

	fake_set(&process, mm, fake_tree_layout.mm_tree, leaf);
	fake_node_slot(&process, leaf, 0, 0x3fffff, 0);
	fake_node_slot(&process, leaf, 1, 0x400fff, head);
	fake_node_slot(&process, leaf, 2, 0x47ffff, text);
	fake_node_slot(&process, leaf, 3, 0x4fffff, moved);
	fake_node_slot(&process, leaf, 4, UINT64_MAX, 0);
	ck_assert(vmas_are(&fake_tree_layout, mm, "400000-401000+0f 401000-480000+1000xf "));
}
END_TEST

START_TEST(mappings_come_from_the_list)
{
	struct vma_layout layout = fake_tree_layout;
	uint64_t mm = fake_object(&process, 256);
	uint64_t head = fake_vma(&process, 0x400000, 0x401000, 0, FAKE_KERNEL, false);
	uint64_t text = fake_vma(&process, 0x401000, 0x480000, 1, FAKE_KERNEL, true);

	layout.has_tree = false;
	layout.mm_list = 0x80;
	layout.next = 0x10;
	ck_assert(vmas_are(&layout, mm, ""));
	fake_set(&process, mm, layout.mm_list, head);
	fake_set(&process, head, layout.next, text);
	ck_assert(vmas_are(&layout, mm, "400000-401000+0f 401000-480000+1000xf "));
	fake_set(&process, text, layout.next, head); /* a circle runs backwards */
	ck_assert(!vmas_are(&layout, mm, "400000-401000+0f 401000-480000+1000xf "));
}
END_TEST

/* File names. */

static void assert_name(uint64_t file, const char *expected)
{
	char buffer[OS_FILE_NAME_BYTES];
	const char *name = vma_file_name(&fake_tree_layout, &process.walk, file, buffer);

	if (!expected)
		ck_assert_ptr_null(name);
	else
		ck_assert_pstr_eq(name, expected);
}

START_TEST(names_cross_mounts)
{
	uint64_t top = fake_dentry(&process, 0, "/"), usr = fake_dentry(&process, top, "usr");
	uint64_t other_top = fake_dentry(&process, 0, "/"), bin = fake_dentry(&process, other_top, "bin");
	uint64_t bench = fake_dentry(&process, bin, "ben\x1b[ch");
	uint64_t first = fake_mount(&process, top, 0, 0), second = fake_mount(&process, other_top, first, usr);

	assert_name(fake_file(&process, first, fake_dentry(&process, top, "init")), "/init");
	assert_name(fake_file(&process, second, bench), "/usr/bin/ben?[ch");
}
END_TEST

START_TEST(a_file_of_no_directory_has_its_own_name)
{
	uint64_t dentry = fake_dentry(&process, 0, "memfd:jit");

	assert_name(fake_file(&process, fake_mount(&process, dentry, 0, 0), dentry), "/memfd:jit");
}
END_TEST

START_TEST(names_that_cannot_be_are_none)
{
	uint64_t top = fake_dentry(&process, 0, "/"), mount = fake_mount(&process, top, 0, 0);
	uint64_t a = fake_dentry(&process, top, "a"), b = fake_dentry(&process, a, "b");
	char longest[256], expected[300];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[255] = '\0';
	g_snprintf(expected, sizeof(expected), "/%s/b", longest);
	assert_name(FAKE_KERNEL + FAKE_RAM_BYTES, NULL);
	fake_set(&process, a, fake_tree_layout.dentry_parent, b); /* a circle */
	assert_name(fake_file(&process, mount, b), NULL);
	a = fake_dentry(&process, top, longest);
	b = fake_dentry(&process, a, longest);
	assert_name(fake_file(&process, mount, fake_dentry(&process, a, "b")), expected);
	assert_name(fake_file(&process, mount, b), NULL); /* longer than a name may be */
}
END_TEST

/* Build-ids. */

START_TEST(a_build_id_is_read_behind_other_notes)
{
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];

	fake_elf_page(&process, 0x400000, 0xab);
	ck_assert_uint_eq(elf_build_id_read(&process.walk, (gva_t){0x400000}, 4096, build_id), 20);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_uint_eq(build_id[i], 0xab);
	/* Notes outside what is mapped, a page that is not there, and what is no ELF file. */
	ck_assert_uint_eq(elf_build_id_read(&process.walk, (gva_t){0x400000}, 0x200, build_id), 0);
	ck_assert_uint_eq(elf_build_id_read(&process.walk, (gva_t){0x500000}, 4096, build_id), 0);
	ck_assert_uint_eq(elf_build_id_read(&process.walk, (gva_t){fake_object(&process, 4096)}, 4096, build_id), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vma");
	TCase *tests = tcase_create("vma");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, an_empty_tree_and_one_of_a_single_entry);
	tcase_add_test(tests, a_leaf_ends_where_its_pivots_do);
	tcase_add_test(tests, a_full_leaf_has_a_slot_more_than_pivots);
	tcase_add_test(tests, a_dense_node_has_one_index_a_slot);
	tcase_add_test(tests, inner_nodes_hand_their_range_down);
	tcase_add_test(tests, damaged_trees_end);
	tcase_add_test(tests, mappings_come_from_the_tree);
	tcase_add_test(tests, mappings_come_from_the_list);
	tcase_add_test(tests, names_cross_mounts);
	tcase_add_test(tests, a_file_of_no_directory_has_its_own_name);
	tcase_add_test(tests, names_that_cannot_be_are_none);
	tcase_add_test(tests, a_build_id_is_read_behind_other_notes);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
