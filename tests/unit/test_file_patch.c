// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traps in the page of a file, in memory laid out by hand: where there is one, while the guest moves the page, writes
 * to it, truncates the file, forgets the page and gives a process a copy of its own.
 */
#include "kvm/vcpu/file_patch.h"

#include <check.h>

#include "fake_page_cache.h"
#include "fake_tasks.h"
#include "guest/guest_debug.h"
#include "linux/file_code.h"
#include "run_suite.h"

#define OBJECTS UINT64_C(0x50000) /* guest physical, behind the tasks */
#define PAGE UINT64_C(0x70000)
#define OTHER UINT64_C(0x71000)
#define OWN UINT64_C(0x72000)   /* a process's copy */
#define CODE UINT64_C(0x400000) /* where a process has the file's second page */
#define AT UINT64_C(0x123)      /* in that page */
#define OFFSET (UINT64_C(0x1000) + AT)
#define INT3 0xcc
#define PUSH 0x55

static struct fake_process process;
static struct kernel_layout kernel;
static struct file_patches patches;
static struct file_code code;
static struct file_patch *patch;
static uint64_t file, node;
static struct guest_regs regs;

static uint8_t *memory(struct guest *guest, gpa_t at)
{
	ck_assert_ptr_eq(guest, &process.fake.guest);
	return at.value < FAKE_RAM_BYTES ? process.fake.ram + at.value : NULL;
}

static void unpatch_file(struct guest *guest G_GNUC_UNUSED, uint64_t mapping, uint64_t offset, uint8_t *bytes, size_t n)
{
	file_patches_put_back(&patches, mapping, offset, bytes, n);
}

static const struct guest_debug_ops debug = {.unpatch_file = unpatch_file};

/* The page of the file is at `gpa`, with these flags besides. */
static void cache(uint64_t gpa, uint64_t flags)
{
	uint64_t folio = fake_folio(&process, gpa, 1);

	fake_set(&process, folio, fake_cache_layout.folio_flags, UINT64_C(1) << FAKE_UPTODATE | flags);
	fake_cache_slot(&process, node, 1, folio);
}

/* A process has the page at `gpa` mapped at CODE. */
static void map(uint64_t gpa)
{
	fake_map(&process.fake, process.root, 4, CODE, gpa, 1);
}

static void setup(void)
{
	fake_tasks_init(&process.fake, &process.walk);
	process.root = process.walk.tables.cr3;
	process.next_object = OBJECTS;
	process.fake.guest.debug = &debug;
	fake_processors_init(&process.fake, &kernel);
	kernel.mappings = fake_tree_layout;
	kernel.page_cache = fake_cache_layout;
	kernel.has_mappings = kernel.has_page_cache = true;
	kernel_layout_settle(&kernel);
	fake_cache_init(&process, 0x2000);
	node = fake_cache_node(&process, 0);
	fake_set(&process, FAKE_MAPPING, fake_cache_layout.mapping_root, node);
	for (uint64_t page = PAGE; page <= OWN; page += 0x1000)
		memset(process.fake.ram + page, 0x90, 4096);
	process.fake.ram[PAGE + AT] = PUSH;
	cache(PAGE, 0);
	map(PAGE);

	/* The task that runs. */
	const uint64_t mm = fake_object(&process, 256), leaf = fake_node(&process, 1, true);

	file = fake_file(&process, 0, 0);
	fake_set(&process, file, fake_tree_layout.file_mapping, FAKE_MAPPING);
	fake_write(&process.fake, FAKE_TASK(4) + fake_task_layout.mm, mm);
	fake_set(&process, mm, fake_tree_layout.mm_tree, leaf);
	fake_node_slot(&process, leaf, 0, CODE - 1, 0);
	fake_node_slot(&process, leaf, 1, CODE + 0xfff, fake_vma(&process, CODE, CODE + 0x1000, 1, file, true));
	fake_node_slot(&process, leaf, 2, UINT64_MAX, 0);
	regs = (struct guest_regs){.valid = true, .rip = CODE + AT, .cr3 = process.root, .cpl = 3};

	file_patches_init(&patches, &process.fake.guest, INT3, memory);
	ck_assert_ptr_null(file_code_why_not(&kernel));
	ck_assert(file_code_open(&code, &kernel, &process.walk, file, OFFSET));
	ck_assert(file_code_read(&code, &process.walk));
	ck_assert_uint_eq(code.n, 1);
	ck_assert_uint_eq(code.code[0], PUSH);
	ck_assert(code.is_kept);
}

static void teardown(void)
{
	file_patches_deinit(&patches);
}

/* As the main thread does it; whether anything had to be changed. */
static bool settle(void)
{
	if (!file_patch_settle(&patches, patch, &process.walk, false))
		return false;
	return file_patch_settle(&patches, patch, &process.walk, true);
}

static void add(void)
{
	patch = file_patches_add(&patches, &code);
	ck_assert_ptr_nonnull(patch);
	settle();
}

static void drop(void)
{
	file_patch_drop(patch);
	settle();
}

static enum file_trap hit(uint8_t **place)
{
	struct file_patch *found = NULL;
	const enum file_trap trap = file_patches_hit(&patches, 0, &regs, &found, place);

	if (trap == FILE_TRAP_OURS)
		ck_assert_ptr_eq(found, patch);
	return trap;
}

static uint8_t byte(uint64_t page)
{
	return process.fake.ram[page + AT];
}

START_TEST(the_last_user_lifts_it)
{
	uint8_t *place;

	add();
	ck_assert_uint_eq(byte(PAGE), INT3);
	ck_assert(!settle());
	ck_assert_int_eq(hit(&place), FILE_TRAP_OURS);
	ck_assert_ptr_eq(place, process.fake.ram + PAGE + AT);
	ck_assert_ptr_eq(file_patches_add(&patches, &code), patch);
	drop();
	ck_assert_uint_eq(byte(PAGE), INT3);
	ck_assert(file_patches_unsettled(&patches));
	drop();
	ck_assert_uint_eq(byte(PAGE), PUSH);
	ck_assert(!file_patches_unsettled(&patches));
	ck_assert_int_eq(hit(&place), FILE_TRAP_GONE);
	add();
	ck_assert_uint_eq(byte(PAGE), INT3);
}
END_TEST

/* What is read for another probe has the file's instruction. */
START_TEST(the_files_code_is_read)
{
	struct file_code again;

	add();
	ck_assert(file_code_open(&again, &kernel, &process.walk, file, OFFSET));
	ck_assert(file_code_read(&again, &process.walk));
	ck_assert_uint_eq(again.code[0], PUSH);
	ck_assert(file_code_equal(&again, &code));
}
END_TEST

START_TEST(a_dirty_page_gets_none)
{
	cache(PAGE, 1 << FAKE_DIRTY);
	add();
	ck_assert_uint_eq(byte(PAGE), PUSH);
	ck_assert(atomic_load(&patch->is_lost));
	drop();
	ck_assert(!file_patches_unsettled(&patches));
	cache(PAGE, 0);
	add(); /* a new one */
	ck_assert_uint_eq(byte(PAGE), INT3);
}
END_TEST

/* Where pages are never written, all of them are dirty. */
START_TEST(a_file_in_memory_alone)
{
	fake_set(&process, FAKE_SUPER, fake_cache_layout.super_bdi, FAKE_NO_BDI);
	ck_assert(file_code_open(&code, &kernel, &process.walk, file, OFFSET));
	ck_assert(file_code_read(&code, &process.walk));
	cache(PAGE, 1 << FAKE_DIRTY);
	add();
	ck_assert_uint_eq(byte(PAGE), INT3);
	drop();
	ck_assert_uint_eq(byte(PAGE), PUSH);
}
END_TEST

START_TEST(a_page_that_is_written_to)
{
	add();
	cache(PAGE, 1 << FAKE_DIRTY);
	ck_assert(settle());
	ck_assert_uint_eq(byte(PAGE), PUSH);
	ck_assert(atomic_load(&patch->is_lost));
	cache(PAGE, 0);
	ck_assert(!settle());
	ck_assert_uint_eq(byte(PAGE), PUSH);
}
END_TEST

START_TEST(what_the_guest_wrote_stays)
{
	add();
	process.fake.ram[PAGE + AT] = 0xe8;
	ck_assert(!settle());
	ck_assert(atomic_load(&patch->is_lost));
	drop();
	ck_assert_uint_eq(byte(PAGE), 0xe8);
}
END_TEST

/* It is left alone then. */
START_TEST(a_page_that_is_busy)
{
	static const unsigned bits[] = {FAKE_LOCKED, FAKE_WRITEBACK};

	add();
	for (size_t i = 0; i < G_N_ELEMENTS(bits); i++) {
		cache(PAGE, UINT64_C(1) << bits[i]);
		file_patch_drop(patch);
		ck_assert(!settle());
		ck_assert_uint_eq(byte(PAGE), INT3);
		ck_assert(file_patches_unsettled(&patches));
		cache(PAGE, 0);
		ck_assert(settle());
		ck_assert_uint_eq(byte(PAGE), PUSH);
		add();
	}
}
END_TEST

/* The copy has the trap, too, and the old page may be anything. */
START_TEST(a_page_that_moves)
{
	uint8_t *place;

	add();
	memcpy(process.fake.ram + OTHER, process.fake.ram + PAGE, 4096);
	cache(OTHER, 0);
	map(OTHER);
	ck_assert_int_eq(hit(&place), FILE_TRAP_OURS);
	ck_assert_ptr_eq(place, process.fake.ram + OTHER + AT);
	ck_assert(!settle());
	drop();
	ck_assert_uint_eq(byte(OTHER), PUSH);
	ck_assert_uint_eq(byte(PAGE), INT3);
}
END_TEST

START_TEST(a_page_that_is_dropped)
{
	uint8_t *place;

	add();
	fake_cache_slot(&process, node, 1, 0);
	map(0x100000); /* no memory */
	ck_assert(!settle());
	ck_assert(!atomic_load(&patch->is_lost));
	ck_assert_int_eq(hit(&place), FILE_TRAP_GONE);
	/* Read again, to another place; there may be a part of the page first. */
	process.fake.ram[OTHER + AT] = PUSH;
	cache(OTHER, UINT64_C(1) << FAKE_LOCKED);
	ck_assert(!settle());
	cache(OTHER, 0);
	ck_assert(settle());
	ck_assert_uint_eq(byte(OTHER), INT3);
	fake_cache_slot(&process, node, 1, 0);
	drop();
	ck_assert(!file_patches_unsettled(&patches));
}
END_TEST

START_TEST(a_file_that_is_truncated)
{
	add();
	fake_set(&process, FAKE_INODE, fake_cache_layout.inode_size, OFFSET);
	ck_assert(!settle());
	ck_assert_uint_eq(byte(PAGE), INT3);
	fake_set(&process, FAKE_INODE, fake_cache_layout.inode_size, OFFSET + 1);
	drop();
	ck_assert_uint_eq(byte(PAGE), PUSH);
}
END_TEST

/* The address_space has become that of another file. */
START_TEST(another_file)
{
	add();
	fake_set(&process, FAKE_INODE, fake_cache_layout.inode_number, 78);
	ck_assert(!settle());
	drop();
	ck_assert_uint_eq(byte(PAGE), INT3);
	ck_assert(!file_patches_unsettled(&patches));
}
END_TEST

START_TEST(a_process_with_a_copy_of_its_own)
{
	uint8_t *place;

	add();
	memcpy(process.fake.ram + OWN, process.fake.ram + PAGE, 4096);
	map(OWN);
	ck_assert_int_eq(hit(&place), FILE_TRAP_OURS);
	ck_assert_ptr_eq(place, process.fake.ram + OWN + AT);
	drop();
	ck_assert_int_eq(hit(&place), FILE_TRAP_OURS); /* for its user to lift it */
	file_patch_lift(&patches, patch, place);
	ck_assert_uint_eq(byte(OWN), PUSH);
	ck_assert_int_eq(hit(&place), FILE_TRAP_GONE);
}
END_TEST

START_TEST(a_trap_of_the_guests_own)
{
	uint8_t *place;

	add();
	process.fake.ram[PAGE + AT + 1] = INT3;
	regs.rip++;
	ck_assert_int_eq(hit(&place), FILE_TRAP_NONE);
	/* At the same place of a page that is no file's. */
	regs.rip = CODE + 0x10000 + AT;
	process.fake.ram[OWN + AT] = INT3;
	fake_map(&process.fake, process.root, 4, CODE + 0x10000, OWN, 1);
	ck_assert_int_eq(hit(&place), FILE_TRAP_NONE);
}
END_TEST

/* An instruction is not what it was when the page is read again. */
START_TEST(other_code)
{
	add();
	fake_cache_slot(&process, node, 1, 0);
	settle();
	process.fake.ram[OTHER + AT] = 0x53;
	cache(OTHER, 0);
	ck_assert(!settle());
	ck_assert(atomic_load(&patch->is_lost));
	ck_assert_uint_eq(byte(OTHER), 0x53);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file_patch");
	TCase *tests = tcase_create("file_patch");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, the_last_user_lifts_it);
	tcase_add_test(tests, the_files_code_is_read);
	tcase_add_test(tests, a_dirty_page_gets_none);
	tcase_add_test(tests, a_file_in_memory_alone);
	tcase_add_test(tests, a_page_that_is_written_to);
	tcase_add_test(tests, what_the_guest_wrote_stays);
	tcase_add_test(tests, a_page_that_is_busy);
	tcase_add_test(tests, a_page_that_moves);
	tcase_add_test(tests, a_page_that_is_dropped);
	tcase_add_test(tests, a_file_that_is_truncated);
	tcase_add_test(tests, another_file);
	tcase_add_test(tests, a_process_with_a_copy_of_its_own);
	tcase_add_test(tests, a_trap_of_the_guests_own);
	tcase_add_test(tests, other_code);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
