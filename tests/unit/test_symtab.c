// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "elf_builder.h"
#include "kallsyms_builder.h"
#include "lib/parser/parser.h"
#include "lib/symbol/symtab.h"
#include "run_suite.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define TEXT_BYTES 0x1000u
#define INIT (TEXT + TEXT_BYTES) /* directly behind .text */
#define INIT_BYTES 0x100u
#define DATA UINT64_C(0xffffffff82000000)
#define LOCAL_FUNCTION ELF64_ST_INFO(STB_LOCAL, STT_FUNC)
#define GLOBAL_FUNCTION ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define WEAK_FUNCTION ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define GLOBAL_LABEL ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)
#define LOCAL_LABEL ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)
#define GLOBAL_OBJECT ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)

/* A kernel with .text, .init.text behind it, .data (with `data`) and per-CPU data at address 0. */
struct kernel {
	struct elf_builder builder;
	uint8_t code[TEXT_BYTES];
	uint16_t text, init, data, percpu;
};

static void kernel_init(struct kernel *kernel, const GByteArray *data)
{
	memset(kernel->code, 0x90, sizeof(kernel->code));
	elf_builder_init(&kernel->builder);
	kernel->text = elf_builder_section(&kernel->builder,
	                                   (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                                        0x1000000, kernel->code, TEXT_BYTES, 0});
	kernel->init = elf_builder_section(&kernel->builder,
	                                   (struct elf_section){".init.text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
	                                                        INIT, 0x2000000, kernel->code, INIT_BYTES, 0});
	kernel->data = elf_builder_section(
		&kernel->builder, (struct elf_section){".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, 0x3000000,
	                                               data ? data->data : kernel->code, data ? data->len : 64, 0});
	kernel->percpu = elf_builder_section(&kernel->builder,
	                                     (struct elf_section){".data..percpu", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE,
	                                                          0, 0x8000000, kernel->code, 0x100, 0});
}

static void kernel_symbol(struct kernel *kernel, const char *name, uint64_t address, uint64_t size, uint8_t info)
{
	uint16_t section = address < DATA && address >= INIT ? kernel->init
	                   : address >= DATA                 ? kernel->data
	                   : address >= TEXT                 ? kernel->text
	                                                     : kernel->percpu;

	elf_builder_symbol(&kernel->builder, name, address, size, info, section);
}

static struct symtab *load(GByteArray *file, GError **error)
{
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(file);
	struct image *image = image_new("test-kernel", bytes, NULL);

	ck_assert_ptr_nonnull(image);

	struct symtab *symtab = symtab_load(image, error);

	image_free(image); /* before its table: nothing may point into it */
	return symtab;
}

static struct symtab *kernel_finish(struct kernel *kernel)
{
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = load(elf_builder_finish(&kernel->builder), &error);

	ck_assert_msg(symtab, "%s", error ? error->message : "");
	elf_builder_deinit(&kernel->builder);
	return symtab;
}

static void assert_at(const struct symtab *symtab, uint64_t address, const char *name)
{
	const struct symbol *symbol = symtab_find(symtab, address);

	ck_assert_msg(g_strcmp0(symbol ? symbol->name : NULL, name) == 0, "0x%lx: %s, expected %s", address,
	              symbol ? symbol->name : "nothing", name ? name : "nothing");
}

static void assert_ranges(const struct symtab *symtab)
{
	assert_at(symtab, 0, NULL);
	assert_at(symtab, 0x10, NULL); /* per-CPU */
	assert_at(symtab, TEXT, NULL);
	assert_at(symtab, TEXT + 0xf, NULL);
	assert_at(symtab, TEXT + 0x10, "sized");
	assert_at(symtab, TEXT + 0x2f, "sized");
	assert_at(symtab, TEXT + 0x30, NULL);
	assert_at(symtab, TEXT + 0x40, "unsized");
	assert_at(symtab, TEXT + 0x7f, "unsized");
	assert_at(symtab, TEXT + 0x80, "next");
	assert_at(symtab, TEXT + 0x90, NULL);
	assert_at(symtab, TEXT + 0xfef, "last");
	assert_at(symtab, TEXT + 0xfff, "beyond");
	assert_at(symtab, INIT, NULL);
	assert_at(symtab, INIT + 0x10, "init");
	assert_at(symtab, INIT + INIT_BYTES - 1, "init");
	assert_at(symtab, INIT + INIT_BYTES, NULL);
	assert_at(symtab, DATA, NULL);
	assert_at(symtab, UINT64_MAX, NULL);

	ck_assert_uint_eq(symtab_find_name(symtab, "unsized")->size, 0x40);
	ck_assert_uint_eq(symtab_find_name(symtab, "last")->size, 0xf0);
	ck_assert_uint_eq(symtab_find_name(symtab, "beyond")->size, 0x10);
	ck_assert_ptr_null(symtab_find_name(symtab, "absent"));
}

START_TEST(test_ranges)
{
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	kernel_symbol(&kernel, "sized", TEXT + 0x10, 0x20, GLOBAL_FUNCTION);
	kernel_symbol(&kernel, "unsized", TEXT + 0x40, 0, LOCAL_FUNCTION);
	kernel_symbol(&kernel, "next", TEXT + 0x80, 0x10, LOCAL_FUNCTION);
	kernel_symbol(&kernel, "last", TEXT + 0xf00, 0, LOCAL_FUNCTION);
	kernel_symbol(&kernel, "beyond", TEXT + 0xff0, 0x1000, LOCAL_FUNCTION); /* more than the section has */
	kernel_symbol(&kernel, "init", INIT + 0x10, 0, LOCAL_FUNCTION);
	kernel_symbol(&kernel, "variable", DATA, 8, GLOBAL_OBJECT);
	kernel_symbol(&kernel, "percpu", 0x10, 8, GLOBAL_OBJECT);

	struct symtab *symtab = kernel_finish(&kernel);

	ck_assert_str_eq(symtab_source(symtab), "symtab");
	ck_assert_uint_eq(symtab_find_name(symtab, "variable")->address, DATA);
	ck_assert_int_eq(symtab_find_name(symtab, "variable")->type, 'D');
	assert_ranges(symtab);
	symtab_keep_code(symtab);
	ck_assert_ptr_null(symtab_find_name(symtab, "variable"));
	ck_assert_ptr_null(symtab_find_name(symtab, "percpu"));
	assert_ranges(symtab);
	symtab_free(symtab);
	symtab_free(NULL);
}
END_TEST

#define MANY 3000u
#define MANY_BYTES (MANY * 32)
#define ALIKE_BITS 7u
#define ALIKE (1u << ALIKE_BITS)
#define LONG_NAME 400u /* shares more with the next one than a byte can say */

/* Names that begin alike, some twice; code that nests, ends and has gaps; data between. */
static void many_list(struct symtab_builder *builder, void *data)
{
	GRand *random = data;

	for (unsigned i = 0; i < MANY; i++) {
		g_autofree char *stem =
			g_strnfill(i % 100 == 0 ? LONG_NAME : (gsize)g_rand_int_range(random, 1, 20), 'a');
		g_autofree char *name = g_strdup_printf("%s_%d", stem, g_rand_int_range(random, 0, MANY / 3));
		const uint64_t address = TEXT + (uint64_t)g_rand_int_range(random, 0, MANY_BYTES);

		symtab_add(builder, address, (uint64_t)g_rand_int_range(random, 0, 200), "TtWwd"[i % 5], name,
		           i % 50 == 7);
	}
}

static struct symtab *many_new(const struct symtab_code *code, size_t n)
{
	GRand *random = g_rand_new_with_seed(1);
	struct symtab *symtab = symtab_new_list("list", code, n, UINT64_MAX, many_list, random);

	g_rand_free(random);
	ck_assert_ptr_nonnull(symtab);
	return symtab;
}

/* Nothing, or the same. The loops below have no assertion for each address: check(3) writes of those that hold, too. */
static bool is_same(const struct symbol *symbol, const struct symbol *expected)
{
	if (!symbol || !expected)
		return symbol == expected;
	return strcmp(symbol->name, expected->name) == 0 && symbol->address == expected->address &&
	       symbol->size == expected->size && symbol->type == expected->type;
}

START_TEST(test_packed)
{
	const struct symtab_code code = {TEXT, MANY_BYTES};
	struct symtab *whole = many_new(&code, 1), *packed = many_new(&code, 1);
	size_t n;
	const struct symbol *symbols = symtab_symbols(whole, &n);
	unsigned n_found = 0;

	symtab_keep_code(packed);
	symtab_keep_code(packed); /* for a second time, which does nothing */
	for (uint64_t address = TEXT - 1; address <= TEXT + MANY_BYTES; address++) {
		const struct symbol *found = symtab_find(whole, address);

		if (!is_same(symtab_find(packed, address), found))
			ck_abort_msg("another symbol at 0x%" PRIx64, address);
		n_found += found != NULL;
	}
	ck_assert_uint_gt(n_found, MANY_BYTES / 2);
	ck_assert_ptr_eq(symtab_find(packed, symbols[n / 2].address), symtab_find(packed, symbols[n / 2].address));
	for (size_t i = 0; i < n; i++) {
		const struct symbol *first = symtab_find_name(whole, symbols[i].name);

		if (symbols[i].type != 'd' && first->type != 'd' &&
		    !is_same(symtab_find_name(packed, symbols[i].name), first))
			ck_abort_msg("another symbol %s", symbols[i].name);
	}
	ck_assert_ptr_null(symtab_find_name(packed, ""));
	ck_assert_ptr_null(symtab_find_name(packed, "aaa_"));
	ck_assert_ptr_null(symtab_find_name(packed, "z"));
	ck_assert_ptr_null(symtab_find_data(packed, TEXT));
	symtab_symbols(packed, &n);
	ck_assert_uint_eq(n, 0);
	symtab_free(packed);
	symtab_free(whole);
}
END_TEST

/* The same symbols by name, with the index and without. */
START_TEST(test_names)
{
	const struct symtab_code code = {TEXT, MANY_BYTES};
	struct symtab *searched = many_new(&code, 1), *indexed = many_new(&code, 1);
	size_t n;
	const struct symbol *symbols = symtab_symbols(searched, &n);

	symtab_index_names(indexed);
	symtab_index_names(indexed); /* for a second time, which does nothing */
	for (size_t i = 0; i < n; i++)
		if (!is_same(symtab_find_name(indexed, symbols[i].name), symtab_find_name(searched, symbols[i].name)))
			ck_abort_msg("another symbol %s", symbols[i].name);
	ck_assert_ptr_null(symtab_find_name(indexed, ""));
	ck_assert_ptr_null(symtab_find_name(indexed, "aaa_"));
	symtab_keep_code(indexed);
	ck_assert_ptr_nonnull(symtab_find_name(indexed, symtab_find(searched, symbols[n / 2].address)->name));
	symtab_index_names(indexed); /* nor of a packed one */
	symtab_free(indexed);
	symtab_free(searched);
}
END_TEST

/* Names of which g_str_hash makes the same number: 33 * 'b' + 'A' is 33 * 'a' + 'b'. */
static void alike_list(struct symtab_builder *builder, void *data G_GNUC_UNUSED)
{
	for (unsigned i = 0; i < ALIKE; i++) {
		char name[2 * ALIKE_BITS + 1] = "";

		for (unsigned bit = 0; bit < ALIKE_BITS; bit++)
			memcpy(name + 2 * bit, i >> bit & 1 ? "bA" : "ab", 2);
		symtab_add(builder, TEXT + i, 1, 'T', name, false);
	}
}

/* They are found all the same. */
START_TEST(test_names_alike)
{
	const struct symtab_code code = {TEXT, ALIKE};
	struct symtab *symtab = symtab_new_list("list", &code, 1, UINT64_MAX, alike_list, NULL);
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	ck_assert_uint_eq(n, ALIKE);
	ck_assert_uint_eq(g_str_hash(symbols[0].name), g_str_hash(symbols[n - 1].name));
	symtab_index_names(symtab);
	for (size_t i = 0; i < n; i++)
		ck_assert_ptr_eq(symtab_find_name(symtab, symbols[i].name), &symbols[i]);
	symtab_free(symtab);
}
END_TEST

static void far_list(struct symtab_builder *builder, void *data G_GNUC_UNUSED)
{
	symtab_add(builder, 0x1000, 16, 'T', "low", false);
	symtab_add(builder, TEXT, 16, 'T', "high", false);
}

/* It stays as it is. */
START_TEST(test_too_far_to_pack)
{
	const struct symtab_code code[] = {{0x1000, 16}, {TEXT, 16}};
	struct symtab *symtab = symtab_new_list("list", code, G_N_ELEMENTS(code), UINT64_MAX, far_list, NULL);
	size_t n;

	symtab_keep_code(symtab);
	assert_at(symtab, 0x1008, "low");
	assert_at(symtab, TEXT + 8, "high");
	symtab_symbols(symtab, &n);
	ck_assert_uint_eq(n, 2);
	symtab_free(symtab);
}
END_TEST

static struct image *kernel_image(struct kernel *kernel)
{
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(elf_builder_finish(&kernel->builder));

	elf_builder_deinit(&kernel->builder);
	return image_new("test-kernel", bytes, NULL);
}

/* Where KASLR has put it: code and its sections slide, per-CPU offsets do not. */
START_TEST(test_slide)
{
	const uint64_t slide = UINT64_C(0x23800000);
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	kernel_symbol(&kernel, "function", TEXT + 0x10, 0x20, GLOBAL_FUNCTION);
	elf_builder_symbol(&kernel.builder, "percpu", 0x10, 0, GLOBAL_LABEL, SHN_ABS);
	elf_builder_symbol(&kernel.builder, "_etext", INIT, 0, GLOBAL_FUNCTION, kernel.text);

	struct image *image = kernel_image(&kernel);
	size_t n;

	image_set_slide(image, slide);
	struct symtab *symtab = symtab_load(image, NULL);

	assert_at(symtab, TEXT + slide + 0x10, "function");
	assert_at(symtab, TEXT + 0x10, NULL);
	assert_at(symtab, INIT + slide, ".init.text");
	ck_assert_uint_eq(symtab_find_name(symtab, "percpu")->address, 0x10);
	ck_assert_ptr_nonnull(image_at(image, TEXT + slide, &n));
	ck_assert_ptr_null(image_at(image, TEXT, &n));
	symtab_free(symtab);
	image_free(image);
}
END_TEST

static struct image *small_image(void)
{
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	kernel_symbol(&kernel, "function", TEXT + 0x10, 0x20, GLOBAL_FUNCTION);
	return kernel_image(&kernel);
}

/*
 * Names of C++ and Rust for who reads them, and as they are for who looks them up. The last one is 300 bytes that stand
 * for more than 2^60.
 */
START_TEST(test_demangled)
{
	g_autoptr(GString) huge = g_string_new("_Z1fISt4pairIiiES_IS0_S0_E");
	struct kernel kernel;

	for (char digit = '1'; digit <= '9'; digit++)
		g_string_append_printf(huge, "S_IS%c_S%c_E", digit, digit);
	for (char digit = 'A'; digit <= 'Z'; digit++)
		g_string_append_printf(huge, "S_IS%c_S%c_E", digit, digit);
	g_string_append(huge, "Evv");
	const char *const names[][2] = {
		{"main", "main"},
		{"_ZN3foo3barEi", "foo::bar"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
		{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_ZN3foo", "_ZN3foo"},
		{huge->str, huge->str}};

	kernel_init(&kernel, NULL);
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		kernel_symbol(&kernel, names[i][0], TEXT + 0x10 * i, 0x10, GLOBAL_FUNCTION);
	struct image *image = kernel_image(&kernel);
	struct symtab *symtab = symtab_load(image, NULL), *shown = symtab_load_demangled(image, UINT64_MAX, NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		assert_at(symtab, TEXT + 0x10 * i, names[i][0]);
#ifdef VPROF_HAVE_LIBIBERTY
		assert_at(shown, TEXT + 0x10 * i, names[i][1]);
#else
		assert_at(shown, TEXT + 0x10 * i, names[i][0]);
#endif
	}
	symtab_free(symtab);
	symtab_free(shown);
	image_free(image);
}
END_TEST

/* What was kept is not asked for again, here or by another image of the same kernel, wherever that has slid. */
START_TEST(test_kept)
{
	const uint64_t slide = UINT64_C(0x23800000);
	struct image *image = small_image(), *other = small_image();
	struct symtab *symtab = symtab_load_keeping(image, NULL);

	assert_at(symtab, TEXT + 0x10, "function");
	symtab_free(symtab);
	parser_stop();
	image_set_slide(image, slide);
	symtab = symtab_load(image, NULL);
	assert_at(symtab, TEXT + slide + 0x10, "function");
	symtab_free(symtab);
	image_give_symbols(other, image_take_symbols(image));
	ck_assert_int_eq(image_take_symbols(image), -1);
	symtab = symtab_load(other, NULL);
	assert_at(symtab, TEXT + 0x10, "function");
	symtab_free(symtab);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no vprof-parse */
	image_free(image);
	image_free(other);
}
END_TEST

/* From another program, it may be anything. */
START_TEST(test_given_symbols_are_checked)
{
	g_autoptr(GError) error = NULL;
	struct image *image = small_image();

	image_give_symbols(image, sealed_copy("test", "rubbish", 7));
	ck_assert_ptr_null(symtab_load(image, &error));
	ck_assert(g_error_matches(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT));
	image_give_symbols(image, -1);
	struct symtab *symtab = symtab_load(image, NULL);

	assert_at(symtab, TEXT + 0x10, "function");
	symtab_free(symtab);
	image_free(image);
}
END_TEST

/* Linux's .altinstr_aux. */
START_TEST(test_section_without_symbols)
{
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	kernel_symbol(&kernel, "function", TEXT + 0x10, 0x20, GLOBAL_FUNCTION);
	elf_builder_symbol(&kernel.builder, "_etext", INIT, 0, GLOBAL_FUNCTION, kernel.text); /* an end, not a symbol */

	struct symtab *symtab = kernel_finish(&kernel);
	size_t n;

	assert_at(symtab, TEXT, NULL);
	assert_at(symtab, INIT - 1, NULL);
	assert_at(symtab, INIT, ".init.text");
	assert_at(symtab, INIT + INIT_BYTES - 1, ".init.text");
	assert_at(symtab, INIT + INIT_BYTES, NULL);
	assert_at(symtab, DATA, NULL);
	ck_assert_uint_eq(symtab_find(symtab, INIT + 1)->size, INIT_BYTES);
	symtab_symbols(symtab, &n);
	ck_assert_uint_eq(n, 2);
	symtab_free(symtab);
}
END_TEST

START_TEST(test_nested)
{
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	kernel_symbol(&kernel, "outer", TEXT, 0x100, GLOBAL_FUNCTION);
	kernel_symbol(&kernel, "inner", TEXT + 0x20, 0x20, LOCAL_FUNCTION);
	kernel_symbol(&kernel, "innermost", TEXT + 0x28, 0x8, LOCAL_FUNCTION);
	kernel_symbol(&kernel, "overhang", TEXT + 0xf0, 0x20, LOCAL_FUNCTION);

	struct symtab *symtab = kernel_finish(&kernel);

	assert_at(symtab, TEXT + 0x1f, "outer");
	assert_at(symtab, TEXT + 0x20, "inner");
	assert_at(symtab, TEXT + 0x28, "innermost");
	assert_at(symtab, TEXT + 0x30, "inner");
	assert_at(symtab, TEXT + 0x40, "outer");
	assert_at(symtab, TEXT + 0xef, "outer");
	assert_at(symtab, TEXT + 0x10f, "overhang");
	assert_at(symtab, TEXT + 0x110, NULL);
	symtab_free(symtab);
}
END_TEST

START_TEST(test_data)
{
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	kernel_symbol(&kernel, "code", TEXT, 0x100, GLOBAL_FUNCTION);
	kernel_symbol(&kernel, "locks", DATA, 0x20, GLOBAL_OBJECT);
	kernel_symbol(&kernel, "lock", DATA + 0x30, 0x8, GLOBAL_OBJECT);

	struct symtab *symtab = kernel_finish(&kernel);

	ck_assert_str_eq(symtab_find_data(symtab, DATA)->name, "locks");
	ck_assert_str_eq(symtab_find_data(symtab, DATA + 0x1f)->name, "locks");
	ck_assert_str_eq(symtab_find_data(symtab, DATA + 0x37)->name, "lock");
	ck_assert_ptr_null(symtab_find_data(symtab, DATA + 0x20));
	ck_assert_ptr_null(symtab_find_data(symtab, DATA + 0x38));
	ck_assert_ptr_null(symtab_find_data(symtab, TEXT));
	ck_assert_ptr_null(symtab_find_data(symtab, 0));
	symtab_free(symtab);
}
END_TEST

START_TEST(test_aliases)
{
	/* Each row: the better and the worse symbol of one address. */
	static const struct {
		const char *names[2];
		uint64_t sizes[2];
		uint8_t info[2];
	} rows[] = {
		{{"local_sized", "_marker"}, {16, 0}, {LOCAL_FUNCTION, GLOBAL_LABEL}},
		{{"local", "weak_one"}, {16, 16}, {LOCAL_FUNCTION, WEAK_FUNCTION}},
		{{"global", "a_local"}, {16, 16}, {GLOBAL_FUNCTION, LOCAL_FUNCTION}},
		{{"sys_x", "__x64_sys_x"}, {16, 16}, {GLOBAL_FUNCTION, GLOBAL_FUNCTION}},
		{{"__switch_to", "__sched_text_start"}, {16, 16}, {GLOBAL_FUNCTION, GLOBAL_FUNCTION}},
		{{"longer", "short"}, {16, 16}, {GLOBAL_FUNCTION, GLOBAL_FUNCTION}},
		{{"alpha", "bravo"}, {16, 16}, {GLOBAL_FUNCTION, GLOBAL_FUNCTION}},
	};
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++)
		for (unsigned k = 0; k < 2; k++) {
			unsigned which = (i + k) % 2; /* the order of the file must not matter */

			kernel_symbol(&kernel, rows[i].names[which], TEXT + i * 16, rows[i].sizes[which],
			              rows[i].info[which]);
		}

	struct symtab *symtab = kernel_finish(&kernel);
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	ck_assert_uint_eq(n, 2 * G_N_ELEMENTS(rows));
	for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
		assert_at(symtab, TEXT + i * 16 + 7, rows[i].names[0]);
		ck_assert_str_eq(symbols[2 * i].name, rows[i].names[0]);
		ck_assert_str_eq(symbols[2 * i + 1].name, rows[i].names[1]);
	}
	symtab_free(symtab);
}
END_TEST

START_TEST(test_left_out)
{
	struct kernel kernel;

	kernel_init(&kernel, NULL);
	kernel_symbol(&kernel, "function", TEXT, 0x40, GLOBAL_FUNCTION);
	kernel_symbol(&kernel, "$x", TEXT + 0x10, 0, LOCAL_LABEL);
	kernel_symbol(&kernel, ".L12", TEXT + 0x10, 0, LOCAL_LABEL);
	kernel_symbol(&kernel, "", TEXT + 0x10, 0, LOCAL_LABEL);
	kernel_symbol(&kernel, "file.c", TEXT + 0x10, 0, ELF64_ST_INFO(STB_LOCAL, STT_FILE));
	kernel_symbol(&kernel, ".text", TEXT + 0x10, 0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION));
	elf_builder_symbol(&kernel.builder, "undefined", 0, 0, GLOBAL_FUNCTION, SHN_UNDEF);
	elf_builder_symbol(&kernel.builder, "no_such_section", TEXT + 0x10, 0, GLOBAL_FUNCTION, 0x700);
	elf_builder_symbol(&kernel.builder, "absolute", 0x1234, 0, GLOBAL_LABEL, SHN_ABS);
	/* The end of .text is where .init.text begins, but it is no name for what is there. */
	elf_builder_symbol(&kernel.builder, "_etext", INIT, 0, GLOBAL_LABEL, kernel.text);
	kernel_symbol(&kernel, "evil\x1b[2J\xff", INIT + 0x10, 0x10, GLOBAL_FUNCTION);
	kernel_symbol(&kernel, "caf\xc3\xa9", INIT + 0x20, 0x10, GLOBAL_FUNCTION);

	struct symtab *symtab = kernel_finish(&kernel);
	size_t n;

	symtab_symbols(symtab, &n);
	ck_assert_uint_eq(n, 5);
	assert_at(symtab, TEXT + 0x10, "function");
	assert_at(symtab, 0x1234, NULL);
	ck_assert_int_eq(symtab_find_name(symtab, "absolute")->type, 'A');
	ck_assert_uint_eq(symtab_find_name(symtab, "absolute")->size, 1);
	assert_at(symtab, INIT, NULL);
	ck_assert_uint_eq(symtab_find_name(symtab, "_etext")->address, INIT);
	assert_at(symtab, INIT + 0x10, "evil?[2J?");
	assert_at(symtab, INIT + 0x20, "caf\xc3\xa9");
	symtab_free(symtab);
}
END_TEST

START_TEST(test_without_sections)
{
	/* Nothing but segments: a symbol table needs sections, kallsyms does not. */
	struct kernel kernel;
	g_autoptr(GError) error = NULL;

	kernel_init(&kernel, NULL);
	kernel.builder.without_sections = true;
	ck_assert_ptr_null(load(elf_builder_finish(&kernel.builder), &error));
	ck_assert_msg(g_error_matches(error, SYMTAB_ERROR, SYMTAB_ERROR_NONE), "%s", error->message);
	ck_assert(strstr(error->message, "test-kernel") && strstr(error->message, "CONFIG_KALLSYMS"));
	elf_builder_deinit(&kernel.builder);
}
END_TEST

/* .symtab is section 5, .strtab section 6. */
START_TEST(test_corrupt_table)
{
	for (unsigned i = 0; i < 5; i++) {
		struct kernel kernel;
		g_autoptr(GError) error = NULL;

		kernel_init(&kernel, NULL);
		kernel_symbol(&kernel, "function", TEXT, 0x40, GLOBAL_FUNCTION);

		GByteArray *file = elf_builder_finish(&kernel.builder);
		Elf64_Shdr *table = elf_section_header(file, 5);

		ck_assert_uint_eq(table->sh_type, SHT_SYMTAB);
		if (i == 0)
			table->sh_entsize = 16;
		else if (i == 1)
			table->sh_size -= 1;
		else if (i == 2)
			table->sh_link = 100;
		else if (i == 3)
			((Elf64_Sym *)(void *)(file->data + table->sh_offset))[1].st_name = 0x7fffffff;
		else
			elf_section_header(file, 6)->sh_size -= 1; /* without the last NUL */
		ck_assert_ptr_null(load(file, &error));
		ck_assert_msg(g_error_matches(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT), "%s", error->message);
		ck_assert(strstr(error->message, "test-kernel"));
		elf_builder_deinit(&kernel.builder);
	}
}
END_TEST

/* 300 functions of 8 bytes, the last one _etext in the middle of .text, and what .data has. */
static GByteArray *build_kallsyms_with(const struct kallsyms_symbol data[4])
{
	GByteArray *tables = g_byte_array_new();
	struct kallsyms_symbol symbols[305] = {{0x20, "Apercpu_variable"}};

	for (uint32_t i = 1; i <= 300; i++) {
		uint64_t address = TEXT + (i - 1) * 8;

		symbols[i] = (struct kallsyms_symbol){address, i == 300 ? g_strdup("T_etext")
		                                                        : g_strdup_printf("tfunction_%u", i - 1)};
	}
	memcpy(&symbols[301], data, 4 * sizeof(*data));
	kallsyms_build(tables, &KALLSYMS_LAYOUTS[4], DATA, symbols, G_N_ELEMENTS(symbols));
	for (uint32_t i = 1; i <= 300; i++)
		g_free((char *)symbols[i].text);
	return tables;
}

static GByteArray *build_kallsyms(void)
{
	static const struct kallsyms_symbol data[] = {
		{DATA, "D_sdata"}, {DATA, "Dinit_task"}, {DATA + 16, "dother"}, {DATA + 32, "D_edata"}};

	return build_kallsyms_with(data);
}

static void assert_kallsyms(const struct symtab *symtab)
{
	ck_assert_str_eq(symtab_source(symtab), "kallsyms");
	assert_at(symtab, 0x20, NULL);
	assert_at(symtab, TEXT, "function_0");
	assert_at(symtab, TEXT + 8 * 298 + 7, "function_298");
	assert_at(symtab, TEXT + 8 * 299, NULL);
	assert_at(symtab, DATA, NULL);
	ck_assert_uint_eq(symtab_find_name(symtab, "function_7")->size, 8);
	ck_assert_uint_eq(symtab_find_name(symtab, "init_task")->address, DATA);
	ck_assert_uint_eq(symtab_find_name(symtab, "init_task")->size, 16);
	ck_assert_int_eq(symtab_find_name(symtab, "percpu_variable")->type, 'A');
}

START_TEST(test_kallsyms)
{
	for (unsigned i = 0; i < 3; i++) {
		g_autoptr(GByteArray) tables = build_kallsyms();
		struct kernel kernel;

		kernel_init(&kernel, tables);
		kernel.builder.without_sections = i == 1;
		if (i == 2) /* a symbol table without code */
			kernel_symbol(&kernel, "only_data", DATA, 8, GLOBAL_OBJECT);

		struct symtab *symtab = kernel_finish(&kernel);

		assert_kallsyms(symtab);
		symtab_free(symtab);
	}
}
END_TEST

/* As Linux 6.16 and later: .data is executable in the ELF file. */
START_TEST(test_executable_data)
{
	static const struct kallsyms_symbol data[] = {
		{DATA, "T_sdata"}, {DATA, "Tinit_task"}, {DATA + 16, "tother"}, {DATA + 32, "T_edata"}};
	g_autoptr(GByteArray) tables = build_kallsyms_with(data);
	struct kernel kernel;

	kernel_init(&kernel, tables);
	struct symtab *symtab = kernel_finish(&kernel);

	assert_kallsyms(symtab);
	ck_assert_int_eq(symtab_find_name(symtab, "init_task")->type, 'D');
	ck_assert_int_eq(symtab_find_name(symtab, "other")->type, 'd');
	ck_assert_int_eq(symtab_find_name(symtab, "function_7")->type, 't');
	symtab_free(symtab);
}
END_TEST

START_TEST(test_corrupt_kallsyms)
{
	g_autoptr(GByteArray) tables = build_kallsyms();
	g_autoptr(GError) error = NULL;
	struct kernel kernel;

	memset(tables->data, 0xee, 64); /* offsets that are in no order */
	kernel_init(&kernel, tables);
	ck_assert_ptr_null(load(elf_builder_finish(&kernel.builder), &error));
	ck_assert_msg(g_error_matches(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT), "%s", error->message);
	ck_assert(g_str_has_prefix(error->message, "the symbol table of test-kernel cannot be read: "));
	elf_builder_deinit(&kernel.builder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symtab");
	TCase *tcase = tcase_create("symtab");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, test_ranges);
	tcase_add_test(tcase, test_packed);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_names_alike);
	tcase_add_test(tcase, test_too_far_to_pack);
	tcase_add_test(tcase, test_slide);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_given_symbols_are_checked);
	tcase_add_test(tcase, test_section_without_symbols);
	tcase_add_test(tcase, test_demangled);
	tcase_add_test(tcase, test_nested);
	tcase_add_test(tcase, test_data);
	tcase_add_test(tcase, test_aliases);
	tcase_add_test(tcase, test_left_out);
	tcase_add_test(tcase, test_without_sections);
	tcase_add_test(tcase, test_corrupt_table);
	tcase_add_test(tcase, test_kallsyms);
	tcase_add_test(tcase, test_executable_data);
	tcase_add_test(tcase, test_corrupt_kallsyms);
	return run_suite(suite);
}
