// SPDX-License-Identifier: BSD-2-Clause
/* Which file stands at an address of a process at a time, and what symbols its copies have. */
#include <check.h>
#include <stdlib.h>
#include <unistd.h>
#include <vprof/recording.h>

#include <archive.h>
#include <archive_entry.h>

#include "elf_builder.h"
#include "lib/profile/mappings.h"
#include "lib/symbol/image.h"
#include "lib/symbol/user_symbols.h"
#include "run_suite.h"

static const uint8_t id_a[20] = {0xaa, 1}, id_b[20] = {0xbb, 2};
static struct mappings *mappings;
static char *folder;

static void setup(void)
{
	mappings = mappings_new();
	folder = g_dir_make_tmp("vprof-mappings-XXXXXX", NULL);
	ck_assert_ptr_nonnull(folder);
}

static void teardown(void)
{
	g_autofree char *command = g_strdup_printf("rm -rf '%s'", folder);

	mappings_free(mappings);
	ck_assert_int_eq(system(command), 0);
	g_free(folder);
}

/* build_id NULL: a PERF_RECORD_MMAP. */
static void map_in(uint16_t mode, uint32_t pid, uint64_t start, uint64_t end, uint64_t offset, const char *name,
                   const uint8_t *build_id, uint64_t time_ns)
{
	const struct record_id id = {.pid = pid, .tid = pid, .time_ns = time_ns};
	const struct record_mmap mapping = {
		.mode = mode,
		.pid = pid,
		.tid = pid,
		.start = start,
		.bytes = end - start,
		.page_offset = offset,
		.build_id = build_id,
		.build_id_bytes = 20,
		.file_name = {name},
	};
	uint64_t record[64];
	size_t bytes = record_mmap_encode(&mapping, &id, record, sizeof(record));

	ck_assert_uint_ne(bytes, 0);
	mappings_add(mappings, (const struct perf_event_header *)record, bytes, time_ns);
}

static void map(uint32_t pid, uint64_t start, uint64_t end, uint64_t offset, const char *name, const uint8_t *build_id,
                uint64_t time_ns)
{
	map_in(PERF_RECORD_MISC_USER, pid, start, end, offset, name, build_id, time_ns);
}

static const char *name_at(uint32_t pid, uint64_t ip, uint64_t time_ns)
{
	const struct mapping *mapping = mappings_find(mappings, PROFILE_USER, pid, ip, time_ns);

	return mapping ? mapping->file->name : "none";
}

START_TEST(the_latest_mapping_of_the_process_counts)
{
	map(7, 0x1000, 0x5000, 0, "/old", NULL, 10);
	map(7, 0x2000, 0x3000, 0, "/new", NULL, 20);
	map(8, 0x1000, 0x5000, 0, "/other", NULL, 10);
	for (unsigned turn = 0; turn < 2; turn++) { /* remembered answers are the same */
		ck_assert_str_eq(name_at(7, 0x2000, 9), "none");
		ck_assert_str_eq(name_at(7, 0x2000, 10), "/old");
		ck_assert_str_eq(name_at(7, 0x2fff, 20), "/new");
		ck_assert_str_eq(name_at(7, 0x3000, 20), "/old");
		ck_assert_str_eq(name_at(7, 0x5000, 20), "none");
		ck_assert_str_eq(name_at(8, 0x2000, 20), "/other");
		ck_assert_str_eq(name_at(9, 0x2000, 20), "none");
	}
	map(7, 0x2000, 0x3000, 0, "/late", NULL, 15); /* another vCPU's, drained later */
	ck_assert_str_eq(name_at(7, 0x2000, 14), "/old");
	ck_assert_str_eq(name_at(7, 0x2000, 15), "/late");
	ck_assert_str_eq(name_at(7, 0x2000, 20), "/new");
}
END_TEST

/* An agent says what there is after it has begun to run, and the process of a sample is unknown. */
START_TEST(without_tasks_what_is_said_later_counts_before)
{
	map(0, 0x1000, 0x2000, 0, "/a", NULL, 10);
	map(0, 0x1000, 0x2000, 0, "/b", NULL, 20);
	map(0, 0x4000, 0x5000, 0, "/c", NULL, 20);
	map(7, 0x4000, 0x5000, 0, "/d", NULL, 20);
	ck_assert_str_eq(name_at(0, 0x1000, 5), "/a");
	ck_assert_str_eq(name_at(0, 0x1000, 15), "/a");
	ck_assert_str_eq(name_at(0, 0x1000, 25), "/b");
	ck_assert_str_eq(name_at(0, 0x4000, 15), "/c");
	ck_assert_str_eq(name_at(7, 0x4000, 15), "none");
}
END_TEST

START_TEST(what_is_gone_is_nothing)
{
	map(7, 0x1000, 0x5000, 0, "/a", NULL, 10);
	map(7, 0x2000, 0x3000, 0, VPROF_UNMAPPED, NULL, 20);
	map(7, 0x2000, 0x3000, 0, "/b", NULL, 30);
	ck_assert_str_eq(name_at(7, 0x2000, 15), "/a");
	ck_assert_str_eq(name_at(7, 0x2000, 25), "none");
	ck_assert_str_eq(name_at(7, 0x3000, 25), "/a");
	ck_assert_str_eq(name_at(7, 0x2000, 35), "/b");
	map(0, 0x2000, 0x3000, 0, VPROF_UNMAPPED, NULL, 20);
	map(0, 0x2000, 0x3000, 0, "/b", NULL, 30);
	ck_assert_str_eq(name_at(0, 0x2000, 25), "none");
}
END_TEST

START_TEST(what_is_said_again_is_the_same_mapping)
{
	map(7, 0x1000, 0x5000, 0x200, "/a", NULL, 10);
	const struct mapping *mapping = mappings_find(mappings, PROFILE_USER, 7, 0x1234, 30);

	map(7, 0x1000, 0x5000, 0x200, "/a", id_a, 20); /* with the build-id, now that it is known */
	ck_assert_ptr_eq(mappings_find(mappings, PROFILE_USER, 7, 0x1234, 30), mapping);
	ck_assert_uint_eq(mapping->file->build_id_bytes, 20);
	ck_assert_uint_eq(mapping_file_offset(mapping, 0x1234), 0x434);
	ck_assert(!mapping->file->is_another);
}
END_TEST

START_TEST(another_build_of_a_path_is_another_file)
{
	map(7, 0x1000, 0x2000, 0, "/a", id_a, 10);
	map(8, 0x1000, 0x2000, 0, "/a", id_b, 10);
	const struct mapped_file *first = mappings_find(mappings, PROFILE_USER, 7, 0x1000, 10)->file;
	const struct mapped_file *second = mappings_find(mappings, PROFILE_USER, 8, 0x1000, 10)->file;

	ck_assert_ptr_ne(first, second);
	ck_assert(!first->is_another && second->is_another);
}
END_TEST

START_TEST(kernels_and_impossible_mappings_are_left_alone)
{
	const struct record_id id = {0};
	const struct record_mmap kernel = {
		.mode = PERF_RECORD_MISC_KERNEL,
		.pid = 7,
		.start = 0x1000,
		.bytes = 0x1000,
		.file_name = {"[kernel.kallsyms]_text"},
	};
	uint64_t record[16];
	size_t bytes = record_mmap_encode(&kernel, &id, record, sizeof(record));

	mappings_add(mappings, (const struct perf_event_header *)record, bytes, 1);
	map(7, 0x1000, 0x1000, 0, "/empty", NULL, 1);
	map(7, UINT64_MAX, 0x1000, 0, "/wraps", NULL, 1);
	ck_assert_str_eq(name_at(7, 0x1000, 2), "none");
}
END_TEST

static const char *module_at(uint64_t ip, uint64_t time_ns)
{
	/* For samples of every process. */
	const struct mapping *mapping = mappings_find(mappings, PROFILE_KERNEL, 7, ip, time_ns);

	return mapping ? mapping->file->name : "none";
}

START_TEST(modules_are_the_kernels)
{
	const uint64_t code = 0xffffffffc0000000;

	map_in(PERF_RECORD_MISC_KERNEL, UINT32_MAX, 0xffffffff81000000, UINT64_MAX, 0, "[kernel.kallsyms]_text", NULL,
	       1);
	map_in(PERF_RECORD_MISC_KERNEL, UINT32_MAX, code, code + 0x3000, 0, "[ext4]", id_a, 10);
	map_in(PERF_RECORD_MISC_KERNEL, UINT32_MAX, code, code + 0x1000, 0, "[xfs]", id_b, 20);
	ck_assert_str_eq(module_at(code, 5), "[ext4]"); /* seen to be there only later */
	ck_assert_str_eq(module_at(code, 10), "[ext4]");
	ck_assert_str_eq(module_at(code, 20), "[xfs]");
	ck_assert_str_eq(module_at(code + 0x1000, 20), "[ext4]");
	ck_assert_str_eq(module_at(code + 0x3000, 20), "none");
	ck_assert_str_eq(module_at(0xffffffff81000000, 20), "none");
	ck_assert_str_eq(name_at(7, code, 20), "none");
	ck_assert(mapping_is_module(mappings_find(mappings, PROFILE_KERNEL, 7, code, 20)));
}
END_TEST

/* Copies. */

static GBytes *program(uint8_t build_id, bool stripped)
{
	struct elf_builder elf;
	uint8_t code[64] = {0},
		note[36] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, build_id, 1 + (build_id == 0xbb)};
	uint16_t text;

	elf_builder_init(&elf);
	text = elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
	                                                      0x401000, 0x401000, code, 64, 0});
	elf_builder_section(&elf, (struct elf_section){".note", SHT_NOTE, SHF_ALLOC, 0x400200, 0x400200, note, 36, 0});
	if (!stripped)
		elf_builder_symbol(&elf, "render", 0x401010, 16, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text);
	GByteArray *file = elf_builder_finish(&elf);

	elf_builder_deinit(&elf);
	return g_byte_array_free_to_bytes(file);
}

/* Where the builder has put `render` in the file. */
static uint64_t render_offset(GBytes *file)
{
	struct image *image = image_new_program("x", file, NULL);
	size_t n;

	ck_assert_ptr_nonnull(image);
	const struct image_segment *segments = image_segments(image, &n);
	uint64_t offset = 0;

	for (size_t i = 0; i < n; i++)
		if (0x401010 - segments[i].gva < segments[i].memory_bytes)
			offset = segments[i].file_offset + (0x401010 - segments[i].gva);
	image_free(image);
	return offset;
}

static void copy_write(const char *name, GBytes *file)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);
	size_t n;
	const char *data = g_bytes_get_data(file, &n);

	ck_assert(g_file_set_contents(path, data, (gssize)n, NULL));
}

static void archive_write(GByteArray *to, const char *name, GBytes *file, unsigned gzip_layers)
{
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	static char buffer[1 << 16];
	size_t n, used;

	const void *data = g_bytes_get_data(file, &n);

	for (unsigned i = 0; i < gzip_layers; i++)
		archive_write_add_filter_gzip(archive);
	archive_write_set_format_cpio_newc(archive);
	archive_write_set_bytes_in_last_block(archive, 1);
	ck_assert_int_eq(archive_write_open_memory(archive, buffer, sizeof(buffer), &used), ARCHIVE_OK);
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, (int64_t)n);
	archive_entry_set_filetype(entry, AE_IFREG);
	ck_assert_int_eq(archive_write_header(archive, entry), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_data(archive, data, n), (la_ssize_t)n);
	archive_entry_free(entry);
	archive_write_close(archive);
	archive_write_free(archive);
	g_byte_array_append(to, (const uint8_t *)buffer, (guint)used);
}

static void assert_found(struct user_symbols *symbols, const char *name, const uint8_t *build_id, uint64_t offset,
                         const char *expected)
{
	struct user_symbol symbol;

	if (!expected) {
		ck_assert(!user_symbols_find(symbols, name, build_id, 20, offset, &symbol));
		return;
	}
	ck_assert(user_symbols_find(symbols, name, build_id, 20, offset, &symbol));
	ck_assert_str_eq(symbol.name, expected);
	ck_assert_uint_eq(symbol.size, 16);
}

START_TEST(copies_below_a_folder)
{
	g_autoptr(GBytes) file = program(0xaa, false), stripped = program(0xaa, true);
	struct user_symbols *symbols = user_symbols_new(&(struct user_symbol_sources){.symfs = folder});
	uint64_t at = render_offset(file);

	copy_write("bench", file);
	copy_write("stripped", stripped);
	assert_found(symbols, "/bench", id_a, at + 3, "render");
	assert_found(symbols, "/bench", NULL, at + 3, "render");
	assert_found(symbols, "/bench", id_a, at + 0x100000, NULL);
	assert_found(symbols, "/stripped", id_a, at, NULL);
	assert_found(symbols, "/missing", id_a, at, NULL);
	assert_found(symbols, "//anon", NULL, at, NULL);
	assert_found(symbols, "/x/../bench", id_a, at, NULL);
	ck_assert_uint_eq(user_symbols_warnings(symbols)->len, 0);
	user_symbols_free(symbols);
}
END_TEST

START_TEST(a_copy_for_another_architecture_is_refused)
{
	g_autoptr(GBytes) file = program(0xaa, false);
	const struct user_symbol_sources sources = {.symfs = folder, .arch = ARCH_ARM64, .force = true};
	struct user_symbols *symbols = user_symbols_new(&sources);

	copy_write("bench", file);
	assert_found(symbols, "/bench", NULL, render_offset(file), NULL);
	ck_assert_uint_eq(user_symbols_warnings(symbols)->len, 1);
	ck_assert_ptr_nonnull(strstr(user_symbols_warnings(symbols)->pdata[0],
	                             "is not the guest's /bench: it is for x86-64, the guest is arm64"));
	user_symbols_free(symbols);
}
END_TEST

START_TEST(a_copy_of_another_build_is_refused)
{
	g_autoptr(GBytes) file = program(0xaa, false);
	uint64_t at = render_offset(file);

	copy_write("bench", file);
	for (unsigned force = 0; force < 2; force++) {
		const struct user_symbol_sources sources = {.symfs = folder, .force = force};
		struct user_symbols *symbols = user_symbols_new(&sources);

		assert_found(symbols, "/bench", id_b, at, force ? "render" : NULL);
		assert_found(symbols, "/bench", id_b, at, force ? "render" : NULL);
		ck_assert_uint_eq(user_symbols_warnings(symbols)->len, 1);
		ck_assert_ptr_nonnull(strstr(user_symbols_warnings(symbols)->pdata[0], "bb02000000"));
		user_symbols_free(symbols);
	}
}
END_TEST

/* As a boot loader puts them together, with padding; the later one counts. */
START_TEST(copies_in_archives_one_behind_the_other)
{
	g_autoptr(GBytes) old = program(0xbb, false), new = program(0xaa, false);
	g_autoptr(GByteArray) initrd = g_byte_array_new();
	g_autofree char *path = g_build_filename(folder, "initrd", NULL);
	const struct user_symbol_sources sources = {.initrd = path};
	struct user_symbols *symbols = user_symbols_new(&sources);

	archive_write(initrd, "bin/bench", old, 0);
	const guint used = initrd->len;
	g_byte_array_set_size(initrd, (used + 511) & ~511u);
	memset(initrd->data + used, 0, initrd->len - used);
	archive_write(initrd, "./bin/bench", new, 0);
	ck_assert(g_file_set_contents(path, (const char *)initrd->data, initrd->len, NULL));
	assert_found(symbols, "/bin/bench", id_a, render_offset(new), "render");
	assert_found(symbols, "/bin/other", id_a, 0, NULL);
	user_symbols_free(symbols);
}
END_TEST

START_TEST(archives_are_packed_once_at_most)
{
	g_autoptr(GBytes) file = program(0xaa, false);
	g_autofree char *path = g_build_filename(folder, "initrd", NULL);
	const struct user_symbol_sources sources = {.initrd = path};

	for (unsigned layers = 0; layers < 3; layers++) {
		g_autoptr(GByteArray) initrd = g_byte_array_new();
		struct user_symbols *symbols = user_symbols_new(&sources);

		archive_write(initrd, "bin/bench", file, layers);
		ck_assert(g_file_set_contents(path, (const char *)initrd->data, initrd->len, NULL));
		assert_found(symbols, "/bin/bench", id_a, render_offset(file), layers < 2 ? "render" : NULL);
		user_symbols_free(symbols);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mappings");
	TCase *tests = tcase_create("mappings");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, the_latest_mapping_of_the_process_counts);
	tcase_add_test(tests, without_tasks_what_is_said_later_counts_before);
	tcase_add_test(tests, what_is_gone_is_nothing);
	tcase_add_test(tests, what_is_said_again_is_the_same_mapping);
	tcase_add_test(tests, another_build_of_a_path_is_another_file);
	tcase_add_test(tests, kernels_and_impossible_mappings_are_left_alone);
	tcase_add_test(tests, modules_are_the_kernels);
	tcase_add_test(tests, copies_below_a_folder);
	tcase_add_test(tests, a_copy_for_another_architecture_is_refused);
	tcase_add_test(tests, a_copy_of_another_build_is_refused);
	tcase_add_test(tests, copies_in_archives_one_behind_the_other);
	tcase_add_test(tests, archives_are_packed_once_at_most);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
