// SPDX-License-Identifier: BSD-2-Clause
/* Files of loadable modules made by code: where their code goes, their symbols, folders of them, and wrong ones. */
#include <check.h>
#include <stdlib.h>

#include <archive.h>
#include <archive_entry.h>

#include "elf_builder.h"
#include "lib/symbol/module_file.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/user_symbols.h"
#include "run_suite.h"

static const uint8_t id_a[20] = {0xaa, 1}, id_b[20] = {0xbb, 2};
static char *folder;

static void setup(void)
{
	folder = g_dir_make_tmp("vprof-modules-XXXXXX", NULL);
	ck_assert_ptr_nonnull(folder);
}

static void teardown(void)
{
	g_autofree char *command = g_strdup_printf("rm -rf '%s'", folder);

	ck_assert_int_eq(system(command), 0);
	g_free(folder);
}

static const uint8_t contents[0x1100];

static uint16_t section(struct elf_builder *elf, const char *name, uint64_t flags, size_t bytes)
{
	return elf_builder_section(elf, (struct elf_section){name, SHT_PROGBITS, flags, 0, 0, contents, bytes, 0});
}

static void function(struct elf_builder *elf, const char *name, uint64_t at, uint16_t in)
{
	elf_builder_symbol(elf, name, at, 16, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), in);
}

enum { NOTE = 1, INIT, TEXT, DATA, UNLIKELY };

/* As a compiler leaves them: init in front of the text, data between its pieces. */
static GByteArray *module(const uint8_t build_id[20])
{
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
	struct elf_builder elf;
	GByteArray *notes = g_byte_array_new(), *file;

	elf_builder_note(notes, "GNU", NT_GNU_BUILD_ID, build_id, 20);
	elf_builder_init(&elf);
	elf_builder_section(&elf, (struct elf_section){".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0, 0, notes->data,
	                                               notes->len, 0});
	section(&elf, ".init.text", code, 0x20);
	section(&elf, ".text", code, 0x109);
	section(&elf, ".data", SHF_ALLOC | SHF_WRITE, 0x40);
	section(&elf, ".text.unlikely", code, 0x1000);
	function(&elf, "init_module", 0, INIT);
	function(&elf, "blk_read", 0, TEXT);
	function(&elf, "blk_write", 0x80, TEXT);
	function(&elf, "blk_state", 0, DATA);
	function(&elf, "blk_read.cold", 0x20, UNLIKELY);
	file = elf_builder_finish(&elf);
	elf_header(file)->e_type = ET_REL;
	elf_section_header(file, UNLIKELY)->sh_addralign = 64;
	elf_builder_deinit(&elf);
	g_byte_array_unref(notes);
	return file;
}

static const char *name_at(const struct symtab *symtab, uint64_t address)
{
	const struct symbol *symbol = symtab_find(symtab, address);

	return symbol ? symbol->name : "none";
}

/* .text, then .text.unlikely from the next 64 bytes on; on the next page, .init.text. */
START_TEST(code_is_laid_out_as_the_kernel_does_it)
{
	g_autoptr(GBytes) file = g_byte_array_free_to_bytes(module(id_a));
	g_autoptr(GError) error = NULL;
	struct image *image = image_new_module("made.ko", file, &error);
	size_t n;

	ck_assert_msg(image != NULL, "%s", error ? error->message : "");
	const struct image_segment *segments = image_segments(image, &n);
	struct symtab *symtab = symtab_load(image, &error);

	ck_assert_msg(symtab != NULL, "%s", error ? error->message : "");
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(segments[0].gva, 0);
	ck_assert_uint_eq(segments[0].memory_bytes, 0x2000);
	ck_assert_uint_eq(segments[1].gva, 0x2000);
	ck_assert_uint_eq(segments[1].file_offset, 0x2000);
	ck_assert_str_eq(name_at(symtab, 0x0), "blk_read");
	ck_assert_str_eq(name_at(symtab, 0x10), "none");
	ck_assert_str_eq(name_at(symtab, 0x8f), "blk_write");
	ck_assert_str_eq(name_at(symtab, 0x140 + 0x2f), "blk_read.cold");
	ck_assert_str_eq(name_at(symtab, 0x2000), "init_module");
	ck_assert_uint_eq(image_build_id(image, &n)[0], 0xaa);
	ck_assert_uint_eq(n, 20);
	symtab_free(symtab);
	image_free(image);
}
END_TEST

static void assert_refused(GByteArray *file, const char *why)
{
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(file);
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(image_new_module("made.ko", bytes, &error));
	ck_assert_msg(strstr(error->message, why) != NULL, "%s", error->message);
}

START_TEST(what_is_no_module_is_refused)
{
	GByteArray *file = module(id_a);

	elf_header(file)->e_type = ET_EXEC;
	assert_refused(file, "cannot use kernel module made.ko: it is an ELF file of type 2; a loadable module has 1");
	file = module(id_a);
	elf_section_header(file, TEXT)->sh_size = UINT64_C(1) << 40;
	assert_refused(file, "section 3 names");
	file = module(id_a);
	elf_section_header(file, TEXT)->sh_addralign = UINT64_C(1) << 63;
	assert_refused(file, "it has no code, or more than a loadable module can have");
	file = module(id_a);
	for (unsigned i = INIT; i <= UNLIKELY; i++)
		elf_section_header(file, i)->sh_flags = 0;
	assert_refused(file, "it has no code");
	file = g_byte_array_new();
	assert_refused(file, "0 bytes");
}
END_TEST

/* ---- folders ---- */

static void copy_write(const char *name, GByteArray *file)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);

	ck_assert(g_file_set_contents(path, (const char *)file->data, file->len, NULL));
	g_byte_array_unref(file);
}

/* As distributions compress them. */
static GByteArray *packed(GByteArray *file)
{
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	static char buffer[1 << 16];
	size_t used;

	archive_write_add_filter_xz(archive);
	archive_write_set_format_raw(archive);
	archive_write_set_bytes_in_last_block(archive, 1);
	ck_assert_int_eq(archive_write_open_memory(archive, buffer, sizeof(buffer), &used), ARCHIVE_OK);
	archive_entry_set_filetype(entry, AE_IFREG);
	ck_assert_int_eq(archive_write_header(archive, entry), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_data(archive, file->data, file->len), (la_ssize_t)file->len);
	archive_entry_free(entry);
	archive_write_close(archive);
	archive_write_free(archive);
	g_byte_array_set_size(file, 0);
	g_byte_array_append(file, (const uint8_t *)buffer, (guint)used);
	return file;
}

static void assert_found(struct user_symbols *symbols, const char *name, const uint8_t *build_id, uint64_t offset,
                         const char *expected)
{
	struct user_symbol symbol = {.name = NULL};

	user_symbols_find(symbols, name, build_id, 20, offset, &symbol);
	ck_assert_str_eq(symbol.name ? symbol.name : "none", expected ? expected : "none");
}

START_TEST(symbols_of_modules_in_a_folder)
{
	struct user_symbols *symbols;

	copy_write("virtio-blk.ko", module(id_a));
	copy_write("ext4.ko.xz", packed(module(id_a)));
	copy_write("loop.ko", g_byte_array_new());
	symbols = user_symbols_new(&(struct user_symbol_sources){.modules = folder, .symfs = folder});
	assert_found(symbols, "[virtio_blk]", id_a, 0x85, "blk_write");
	assert_found(symbols, "[ext4]", id_a, 0x2001, "init_module");
	assert_found(symbols, "[ext4]", NULL, 0x10, NULL);
	assert_found(symbols, "[missing]", id_a, 0, NULL);
	assert_found(symbols, "[../ext4]", id_a, 0, NULL);
	assert_found(symbols, "/ext4", id_a, 0, NULL);
	ck_assert_uint_eq(user_symbols_warnings(symbols)->len, 0);
	user_symbols_free(symbols);
}
END_TEST

START_TEST(a_module_of_another_build_is_refused)
{
	copy_write("ext4.ko", module(id_a));
	for (unsigned force = 0; force < 2; force++) {
		const struct user_symbol_sources sources = {.modules = folder, .force = force};
		struct user_symbols *symbols = user_symbols_new(&sources);

		assert_found(symbols, "[ext4]", id_b, 0, force ? "blk_read" : NULL);
		ck_assert_uint_eq(user_symbols_warnings(symbols)->len, 1);
		ck_assert_ptr_nonnull(
			strstr(user_symbols_warnings(symbols)->pdata[0], "ext4.ko is not the guest's [ext4]: its"));
		user_symbols_free(symbols);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("module_file");
	TCase *tests = tcase_create("module_file");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, code_is_laid_out_as_the_kernel_does_it);
	tcase_add_test(tests, what_is_no_module_is_refused);
	tcase_add_test(tests, symbols_of_modules_in_a_folder);
	tcase_add_test(tests, a_module_of_another_build_is_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
