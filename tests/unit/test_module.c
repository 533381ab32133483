// SPDX-License-Identifier: BSD-2-Clause
/* The list of loadable modules in memory laid out by hand: both layouts of struct module, and lists that lie. */
#include <check.h>

#include "btf_builder.h"
#include "elf_builder.h"
#include "fake_modules.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/module_symbols.h"
#include "run_suite.h"

#define SECOND UINT64_C(1000000000)
#define HEAD UINT64_C(0xffffffff82000000)

static struct fake_process process;
static struct module_table table;
static uint64_t now_ns;

static void setup(void)
{
	fake_modules_init(&process);
	memset(&table, 0, sizeof(table));
	now_ns = SECOND;
}

/* The table after one more look at the list, a second later: "name start+bytes@offset#build-id" of each range. */
static bool update(void)
{
	page_walk_init(&process.walk, &process.fake.guest, process.root, false);
	now_ns += SECOND;
	return module_table_update(&table, &fake_module_layout, &process.walk, now_ns);
}

static void assert_table(const char *expected)
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (unsigned i = 0; i < table.n_ranges; i++) {
		const struct module_range *range = &table.ranges[i];
		const struct module *module = &table.modules[range->module];

		g_string_append_printf(text, "%s %lx+%x@%lx", module->name, (unsigned long)range->start, range->bytes,
		                       (unsigned long)module_file_offset(module, range->part));
		if (module->has_build_id)
			g_string_append_printf(text, "#%02x", module->build_id[19]);
		g_string_append_c(text, ' ');
	}
	ck_assert_str_eq(text->str, expected);
}

START_TEST(modules_by_address)
{
	fake_module(&process, "ext4", FAKE_MODULE_CODE + 0x10000, 0x8000, 0xaa);
	uint64_t virtio = fake_module(&process, "virtio_blk", FAKE_MODULE_CODE, 0x3000, 0);

	fake_module_part(&process, virtio, MODULE_INIT_TEXT, FAKE_MODULE_CODE + 0x20000, 0x100);
	ck_assert(update());
	assert_table(
		"virtio_blk ffffffffc0000000+3000@0 ext4 ffffffffc0010000+8000@0#aa virtio_blk ffffffffc0020000+100@3000 ");
	ck_assert_ptr_eq(module_table_find(&table, FAKE_MODULE_CODE + 0x17fff), &table.ranges[1]);
	ck_assert_ptr_eq(module_table_find(&table, FAKE_MODULE_CODE + 0x20000), &table.ranges[2]);
	ck_assert_ptr_null(module_table_find(&table, FAKE_MODULE_CODE + 0x3000));
	ck_assert_ptr_null(module_table_find(&table, FAKE_MODULE_CODE + 0x20100));
	ck_assert_ptr_null(module_table_find(&table, FAKE_MODULE_CODE - 1));
	ck_assert_ptr_null(module_table_find(&table, UINT64_MAX));
}
END_TEST

START_TEST(build_ids_among_notes)
{
	struct module_layout layout = fake_module_layout;
	uint64_t module = fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0);

	layout.build_id = 0;
	layout.notes.attributes = 0xc0;
	module_table_update(&table, &layout, &process.walk, SECOND);
	assert_table("ext4 ffffffffc0000000+8000@0 ");
	fake_module_notes(&process, module, 0xc0, 0xcc);
	fake_module(&process, "loop", FAKE_MODULE_CODE + 0x8000, 0x1000, 0);
	module_table_update(&table, &layout, &process.walk, 2 * SECOND);
	assert_table("ext4 ffffffffc0000000+8000@0#cc loop ffffffffc0008000+1000@0 ");
	fake_set(&process, module, 0xc0, 0xffffff0000000000); /* nothing there */
	fake_module(&process, "xfs", FAKE_MODULE_CODE + 0x9000, 0x1000, 0);
	module_table_update(&table, &layout, &process.walk, 3 * SECOND);
	assert_table("ext4 ffffffffc0000000+8000@0 loop ffffffffc0008000+1000@0 xfs ffffffffc0009000+1000@0 ");
}
END_TEST

START_TEST(build_ids_among_notes_in_a_list)
{
	struct module_layout layout = fake_module_layout;
	uint64_t module = fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0);

	layout.build_id = 0;
	layout.notes.attributes = 0xc0;
	fake_module_notes(&process, module, 0xc0, 0xcc);
	fake_module_notes_list(&process, module, &layout);
	module_table_update(&table, &layout, &process.walk, SECOND);
	assert_table("ext4 ffffffffc0000000+8000@0#cc ");
	const uint64_t list = fake_get(&process, fake_get(&process, module, 0xc0), 0);

	fake_set(&process, list, 8, 0); /* the list ends before the build-id's section */
	fake_module(&process, "loop", FAKE_MODULE_CODE + 0x8000, 0x1000, 0);
	module_table_update(&table, &layout, &process.walk, 2 * SECOND);
	assert_table("ext4 ffffffffc0000000+8000@0 loop ffffffffc0008000+1000@0 ");
	fake_set(&process, list, 0, 0xffffff0000000000); /* nothing there */
	fake_module(&process, "xfs", FAKE_MODULE_CODE + 0x9000, 0x1000, 0);
	module_table_update(&table, &layout, &process.walk, 3 * SECOND);
	assert_table("ext4 ffffffffc0000000+8000@0 loop ffffffffc0008000+1000@0 xfs ffffffffc0009000+1000@0 ");
}
END_TEST

START_TEST(a_list_that_stays_is_read_once)
{
	fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0xaa);
	ck_assert(update());
	process.fake.reads = 0;
	ck_assert(!update());
	ck_assert_uint_le(process.fake.reads, 5); /* the head, and the page tables to it */
	fake_module(&process, "loop", FAKE_MODULE_CODE + 0x10000, 0x1000, 0xbb);
	ck_assert(update());
	assert_table("ext4 ffffffffc0000000+8000@0#aa loop ffffffffc0010000+1000@0#bb ");
}
END_TEST

START_TEST(a_list_that_changes_is_not_read_more_often_than_said)
{
	ck_assert(update());
	fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0xaa);
	ck_assert(!module_table_update(&table, &fake_module_layout, &process.walk, now_ns + MODULE_WAIT_MIN_NS - 1));
	ck_assert(module_table_update(&table, &fake_module_layout, &process.walk, now_ns + MODULE_WAIT_MIN_NS));
}
END_TEST

/* Until its init function has returned, and that has been freed. */
START_TEST(a_module_that_is_being_loaded_is_looked_at_again)
{
	uint64_t module = fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x8000, 0xaa);

	fake_module_part(&process, module, MODULE_INIT_TEXT, FAKE_MODULE_CODE + 0x20000, 0x100);
	fake_set(&process, module, 0, 3); /* unformed */
	ck_assert(update());
	assert_table("");
	process.fake.ram[module - FAKE_KERNEL] = 1; /* coming */
	ck_assert(update());
	assert_table("ext4 ffffffffc0000000+8000@0#aa ext4 ffffffffc0020000+100@8000#aa ");
	process.fake.ram[module - FAKE_KERNEL] = 0; /* live */
	ck_assert(update());
	fake_module_part(&process, module, MODULE_INIT_TEXT, 0, 0);
	ck_assert(update());
	assert_table("ext4 ffffffffc0000000+8000@0#aa ");
	ck_assert(!update());
}
END_TEST

START_TEST(what_cannot_be_is_left_out)
{
	fake_module(&process, "", FAKE_MODULE_CODE, 0x1000, 1);
	fake_module(&process, "a/b", FAKE_MODULE_CODE + 0x1000, 0x1000, 1);
	fake_module(&process, "\x1b[2J", FAKE_MODULE_CODE + 0x2000, 0x1000, 1);
	fake_module(&process, "user", 0x400000, 0x1000, 1);
	fake_module(&process, "huge", FAKE_MODULE_CODE, UINT32_MAX, 1);
	fake_module(&process, "wraps", UINT64_MAX - 0x10, 0x1000, 1);
	fake_module(&process, "empty", FAKE_MODULE_CODE, 0, 1);
	fake_module(&process, "good", FAKE_MODULE_CODE + 0x8000, 0x1000, 1);
	fake_module(&process, "overlaps", FAKE_MODULE_CODE + 0x8fff, 0x1000, 1);
	ck_assert(update());
	/* The list is read from its newest module on. */
	assert_table("overlaps ffffffffc0008fff+1000@0#01 ");
}
END_TEST

START_TEST(hostile_lists_end)
{
	uint64_t link = fake_module_layout.list;
	uint64_t first = fake_module(&process, "one", FAKE_MODULE_CODE, 0x1000, 1);
	uint64_t second = fake_module(&process, "two", FAKE_MODULE_CODE + 0x1000, 0x1000, 2);

	fake_set(&process, first, link, second + link); /* a circle that the head is not in */
	process.fake.reads = 0;
	ck_assert(update());
	ck_assert_uint_le(process.fake.reads, MODULES_MAX * 100);
	assert_table("one ffffffffc0000000+1000@0#01 two ffffffffc0001000+1000@0#02 ");
	fake_set(&process, first, link, 0x1234); /* out of the kernel */
	fake_module(&process, "three", FAKE_MODULE_CODE + 0x2000, 0x1000, 3);
	ck_assert(update());
	assert_table("one ffffffffc0000000+1000@0#01 two ffffffffc0001000+1000@0#02 three ffffffffc0002000+1000@0#03 ");
	ck_assert(!table.settled);
	fake_set(&process, fake_module_layout.head, 0, UINT64_MAX - 3); /* and wrapping */
	ck_assert(update());
	assert_table("");
}
END_TEST

START_TEST(symbols_of_a_module)
{
	static const char *const names[] = {"ext4_read", "ext4_write", "$x", "ext4_sync"};
	uint64_t module = fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x380, 0xaa);

	fake_module_symbols(&process, module, FAKE_MODULE_CODE, names, G_N_ELEMENTS(names));
	ck_assert(update());
	struct symtab *symtab =
		module_symbols_read(&fake_module_layout, &process.walk, &table.modules[0], MODULE_SYMBOLS_BYTES_MAX);

	ck_assert_ptr_nonnull(symtab);
	ck_assert_str_eq(symtab_find(symtab, FAKE_MODULE_CODE + 0x1ff)->name, "ext4_write");
	ck_assert_uint_eq(symtab_find(symtab, FAKE_MODULE_CODE + 0x1ff)->address, FAKE_MODULE_CODE + 0x100);
	ck_assert_ptr_null(symtab_find(symtab, FAKE_MODULE_CODE + 0x200));
	ck_assert_str_eq(symtab_find(symtab, FAKE_MODULE_CODE + 0x37f)->name, "ext4_sync");
	ck_assert_ptr_null(symtab_find(symtab, FAKE_MODULE_CODE + 0x380));
	symtab_free(symtab);
}
END_TEST

/* All modules of a guest share what there is. */
START_TEST(symbols_without_room)
{
	static const char *const names[] = {"one", "two", "three"};
	uint64_t module = fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x300, 0xaa);

	fake_module_symbols(&process, module, FAKE_MODULE_CODE, names, G_N_ELEMENTS(names));
	ck_assert(update());
	struct symtab *symtab =
		module_symbols_read(&fake_module_layout, &process.walk, &table.modules[0], MODULE_SYMBOLS_BYTES_MAX);
	ck_assert_uint_eq(symtab_left_out(symtab), 0);
	symtab_free(symtab);
	symtab = module_symbols_read(&fake_module_layout, &process.walk, &table.modules[0], 360);
	ck_assert_uint_eq(symtab_left_out(symtab), 2);
	ck_assert_str_eq(symtab_find(symtab, FAKE_MODULE_CODE)->name, "one");
	symtab_free(symtab);
	symtab = module_symbols_read(&fake_module_layout, &process.walk, &table.modules[0], 0);
	ck_assert_uint_eq(symtab_left_out(symtab), 3);
	ck_assert_ptr_null(symtab_find(symtab, FAKE_MODULE_CODE));
	symtab_free(symtab);
}
END_TEST

START_TEST(symbols_that_are_not_there)
{
	static const char *const names[] = {"one"};
	uint64_t module = fake_module(&process, "ext4", FAKE_MODULE_CODE, 0x100, 0xaa), kallsyms;

	ck_assert(update());
	ck_assert_ptr_null(
		module_symbols_read(&fake_module_layout, &process.walk, &table.modules[0], MODULE_SYMBOLS_BYTES_MAX));
	fake_module_symbols(&process, module, FAKE_MODULE_CODE, names, 1);
	kallsyms = fake_read(&process.fake, module - FAKE_KERNEL + fake_module_layout.kallsyms);
	fake_set(&process, kallsyms, fake_module_layout.n_symbols, UINT32_MAX);
	ck_assert_ptr_null(
		module_symbols_read(&fake_module_layout, &process.walk, &table.modules[0], MODULE_SYMBOLS_BYTES_MAX));
	/* More than there is memory: what can be read is taken. */
	fake_set(&process, kallsyms, fake_module_layout.n_symbols, MODULE_SYMBOLS_MAX);
	struct symtab *symtab =
		module_symbols_read(&fake_module_layout, &process.walk, &table.modules[0], MODULE_SYMBOLS_BYTES_MAX);

	ck_assert_str_eq(symtab_find(symtab, FAKE_MODULE_CODE)->name, "one");
	symtab_free(symtab);
}
END_TEST

/* ---- layouts ---- */

static void list_head_symbol(struct symtab_builder *builder, void *data)
{
	symtab_add(builder, HEAD, 16, 'T', data, false);
}

static bool layout_load(struct btf_builder *btf, const char *symbol, struct module_layout *layout, GError **error)
{
	const struct symtab_code code = {HEAD, 16};
	struct symtab *symtab = symtab_new_list("test", &code, 1, UINT64_MAX, list_head_symbol, (void *)symbol);
	g_autoptr(GByteArray) section = btf_builder_finish(btf);
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf.entry = 0x200000;
	elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x200000,
	                                               0x200000, "x", 1, 0});
	elf_builder_section(&elf, (struct elf_section){".BTF", SHT_PROGBITS, 0, 0, 0, section->data, section->len, 0});
	struct image *image = image_new("made.elf", g_byte_array_free_to_bytes(elf_builder_finish(&elf)), NULL);
	struct types *types = types_new(image, NULL);
	bool loaded = module_layout_load(symtab, types, layout, error);

	types_free(types);
	image_free(image);
	symtab_free(symtab);
	elf_builder_deinit(&elf);
	btf_builder_deinit(btf);
	return loaded;
}

/* Types of members, by their numbers. */
enum { WORD = 1, QUAD, BYTE, NAME, BUILD_ID };

static void btf_types(struct btf_builder *btf)
{
	btf_builder_init(btf);
	btf_builder_int(btf, "unsigned int", 4);
	btf_builder_int(btf, "long unsigned int", 8);
	btf_builder_int(btf, "char", 1);
	btf_builder_array(btf, BYTE, MODULE_NAME_BYTES);
	btf_builder_array(btf, BYTE, MODULE_BUILD_ID_BYTES);
}

static void btf_begin(struct btf_builder *btf)
{
	btf_types(btf);
	btf_builder_struct(
		btf, "mod_arch_specific",
		(struct btf_member_spec[]){
			{"num_orcs", WORD, 0 * 8}, {"orc_unwind_ip", QUAD, 8 * 8}, {"orc_unwind", QUAD, 16 * 8}, {0}});
	btf_builder_struct(btf, "mod_kallsyms",
	                   (struct btf_member_spec[]){
				   {"symtab", QUAD, 0}, {"num_symtab", WORD, 8 * 8}, {"strtab", QUAD, 16 * 8}, {0}});
}

START_TEST(a_layout_of_6_1)
{
	struct module_layout layout;
	struct btf_builder btf;

	btf_begin(&btf);
	btf_builder_struct(&btf, "module_layout",
	                   (struct btf_member_spec[]){{"base", QUAD, 0}, {"text_size", WORD, 12 * 8}, {0}});
	btf_builder_struct(&btf, "module",
	                   (struct btf_member_spec[]){{"state", WORD, 0},
	                                              {"list", 0, 8 * 8},
	                                              {"name", NAME, 24 * 8},
	                                              {"build_id", BUILD_ID, 80 * 8},
	                                              {"core_layout", 0, 320 * 8},
	                                              {"init_layout", 0, 400 * 8},
	                                              {"arch", 0, 480 * 8},
	                                              {"kallsyms", QUAD, 600 * 8},
	                                              {0}});
	ck_assert(layout_load(&btf, "modules", &layout, NULL));
	ck_assert_uint_eq(layout.head, HEAD);
	ck_assert_uint_eq(layout.list, 8);
	ck_assert_uint_eq(layout.parts[MODULE_TEXT].base, 320);
	ck_assert_uint_eq(layout.parts[MODULE_TEXT].bytes, 332);
	ck_assert_uint_eq(layout.parts[MODULE_INIT_TEXT].base, 400);
	ck_assert_uint_eq(layout.parts[MODULE_INIT_TEXT].bytes, 412);
	ck_assert_uint_eq(layout.build_id, 80);
	ck_assert(layout.has_orc && layout.has_kallsyms);
	ck_assert_uint_eq(layout.orc_n, 480);
	ck_assert_uint_eq(layout.orc_ips, 488);
	ck_assert_uint_eq(layout.orc_entries, 496);
	ck_assert_uint_eq(layout.kallsyms, 600);
	ck_assert_uint_eq(layout.names, 16);
}
END_TEST

START_TEST(a_layout_of_6_4_on)
{
	struct module_layout layout;
	struct btf_builder btf;

	btf_types(&btf);
	btf_builder_sized(&btf, "module_memory", 72,
	                  (struct btf_member_spec[]){{"base", QUAD, 0}, {"size", WORD, 16 * 8}, {0}});
	btf_builder_struct(
		&btf, "module",
		(struct btf_member_spec[]){
			{"state", WORD, 0}, {"list", 0, 8 * 8}, {"name", NAME, 24 * 8}, {"mem", 0, 320 * 8}, {0}});
	ck_assert(layout_load(&btf, "modules", &layout, NULL));
	ck_assert_uint_eq(layout.parts[MODULE_TEXT].base, 320);
	ck_assert_uint_eq(layout.parts[MODULE_TEXT].bytes, 336);
	ck_assert_uint_eq(layout.parts[MODULE_INIT_TEXT].base, 320 + 4 * 72);
	ck_assert_uint_eq(layout.parts[MODULE_INIT_TEXT].bytes, 336 + 4 * 72);
	ck_assert_uint_eq(layout.build_id, 0);
	ck_assert(!layout.has_orc && !layout.has_kallsyms);
}
END_TEST

START_TEST(kernels_without)
{
	const struct btf_member_spec list[] = {{"list", 0, 8 * 8}, {0}};
	g_autoptr(GError) none = NULL, symbol = NULL, member = NULL;
	struct module_layout layout;
	struct btf_builder btf;

	btf_begin(&btf);
	ck_assert(!layout_load(&btf, "modules", &layout, &none));
	ck_assert(g_error_matches(none, MODULE_ERROR, MODULE_ERROR_NONE));
	btf_begin(&btf);
	btf_builder_struct(&btf, "module", list);
	ck_assert(!layout_load(&btf, "another", &layout, &symbol));
	ck_assert_str_eq(symbol->message,
	                 "the kernel has no symbol modules; a stripped image needs CONFIG_KALLSYMS_ALL");
	btf_begin(&btf);
	btf_builder_struct(&btf, "module", list);
	ck_assert(!layout_load(&btf, "modules", &layout, &member));
	ck_assert_str_eq(member->message, "the kernel's BTF has no struct module with a member name");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("module");
	TCase *tests = tcase_create("module");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, modules_by_address);
	tcase_add_test(tests, build_ids_among_notes);
	tcase_add_test(tests, build_ids_among_notes_in_a_list);
	tcase_add_test(tests, a_list_that_stays_is_read_once);
	tcase_add_test(tests, a_list_that_changes_is_not_read_more_often_than_said);
	tcase_add_test(tests, a_module_that_is_being_loaded_is_looked_at_again);
	tcase_add_test(tests, what_cannot_be_is_left_out);
	tcase_add_test(tests, hostile_lists_end);
	tcase_add_test(tests, symbols_of_a_module);
	tcase_add_test(tests, symbols_without_room);
	tcase_add_test(tests, symbols_that_are_not_there);
	tcase_add_test(tests, a_layout_of_6_1);
	tcase_add_test(tests, a_layout_of_6_4_on);
	tcase_add_test(tests, kernels_without);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
