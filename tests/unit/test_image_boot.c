// SPDX-License-Identifier: BSD-2-Clause
/* Boot images of Linux for arm64: a kernel of a few pages, plain, packed with gzip and in a program for EFI. */
#include <check.h>
#include <elf.h>

#include "bzimage_builder.h"
#include "kallsyms_builder.h"
#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"
#include "run_suite.h"

#define LINKED UINT64_C(0xffff800080000000)
#define PLACE UINT64_C(0x200000)
#define MEMORY_BYTES 0x40000u
#define SYMBOLS 300u
#define FUNCTION_BYTES 64u
#define RELOCATIONS 100u
#define BANNER "Linux version 6.12.1-test (root@host) #1"

static const uint8_t BUILD_ID[20] = {0xb1, 0xd0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};

static void put_note(GByteArray *file, const uint8_t *id)
{
	kallsyms_put(file, 4, 4);
	kallsyms_put(file, 20, 4);
	kallsyms_put(file, NT_GNU_BUILD_ID, 4);
	g_byte_array_append(file, (const uint8_t *)"GNU", 4);
	g_byte_array_append(file, id, 20);
}

static void pad(GByteArray *file, size_t to)
{
	while (file->len < to)
		kallsyms_put(file, 0, 1);
}

/* _text first, as scripts/kallsyms.c sorts them; every second symbol is data. */
static void put_kallsyms(GByteArray *file)
{
	static const struct kallsyms_layout layout = {"6.15", true, true, KALLSYMS_RELATIVE, 4, 8};
	struct kallsyms_symbol symbols[SYMBOLS];

	for (unsigned i = 0; i < SYMBOLS; i++)
		symbols[i] = (struct kallsyms_symbol){LINKED + (uint64_t)i * FUNCTION_BYTES,
		                                      i == 0 ? g_strdup("T_text")
		                                             : g_strdup_printf("%csymbol_%u", i % 2 ? 't' : 'd', i)};
	kallsyms_build(file, &layout, LINKED, symbols, SYMBOLS);
	for (unsigned i = 0; i < SYMBOLS; i++)
		g_free((char *)symbols[i].text);
}

/* Where the 8 bytes of `value` are. */
static size_t word_find(const GByteArray *file, uint64_t value)
{
	for (size_t at = 0; at + 8 <= file->len; at += 8)
		if (memcmp(file->data + at, &value, 8) == 0)
			return at;
	ck_abort_msg("not found");
}

/* The base of kallsyms is where the first relocation, if there are any, will put it. */
static void put_relocations(GByteArray *file)
{
	const size_t base = word_find(file, LINKED);

	memset(file->data + base, 0, 8);
	kallsyms_align(file, 8);
	for (unsigned i = 0; i < RELOCATIONS; i++) {
		kallsyms_put(file, LINKED + (i == 0 ? base : 0x30000 + i * 8u), 8);
		kallsyms_put(file, R_AARCH64_RELATIVE, 8);
		kallsyms_put(file, i == 1 ? 0 : LINKED + i * 24u, 8);
	}
}

static GByteArray *build(bool relocated)
{
	static const uint8_t no_id[20];
	GByteArray *file = g_byte_array_new();

	pad(file, 64);
	memcpy(file->data, "MZ", 2);
	bzimage_put(file, 16, MEMORY_BYTES, 4);
	bzimage_put(file, 24, 10, 1); /* pages of 4 KiB, anywhere */
	memcpy(file->data + 56, "ARM\x64", 4);
	pad(file, 4096);
	g_byte_array_append(file, (const uint8_t *)ELFMAG, SELFMAG);
	pad(file, 5000);
	put_note(file, no_id); /* the vDSO's */
	pad(file, 6 * 4096);
	g_byte_array_append(file, (const uint8_t *)BANNER, sizeof(BANNER));
	pad(file, 7 * 4096);
	put_note(file, BUILD_ID);
	g_byte_array_append(file, (const uint8_t *)"\x9f\xeb\1\0\x18\0\0\0\0\0\0\0", 12);
	kallsyms_put(file, 4, 4);
	kallsyms_put(file, 4, 4);
	kallsyms_put(file, 3, 4);
	g_byte_array_append(file, (const uint8_t *)"TYPE\0a", 7);
	pad(file, 8 * 4096);
	put_kallsyms(file);
	if (relocated)
		put_relocations(file);
	return file;
}

static struct image *open_bytes(const GByteArray *file, GError **error)
{
	g_autoptr(GBytes) bytes = g_bytes_new(file->data, file->len);

	return image_new("test-kernel", bytes, error);
}

static void assert_kernel(const struct image *image)
{
	const struct image_segment *segments;
	struct image_start start;
	uint64_t address;
	size_t n;

	segments = image_segments(image, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(segments[0].gpa, PLACE);
	ck_assert_uint_eq(segments[0].gva, LINKED);
	ck_assert_uint_eq(segments[0].memory_bytes, MEMORY_BYTES);
	ck_assert_uint_eq(image_entry(image), PLACE);
	image_find_start(image, &start);
	ck_assert_uint_eq(start.gpa, PLACE);
	ck_assert_uint_eq(start.gva, LINKED);
	ck_assert_int_eq(image_arch(image), ARCH_ARM64);
	ck_assert(image_is_linux(image));
	ck_assert(!image_is_bzimage(image));
	ck_assert_str_eq(image_release(image), "6.12.1-test");
	ck_assert_mem_eq(image_build_id(image, &n), BUILD_ID, sizeof(BUILD_ID));
	ck_assert_mem_eq(image_section(image, ".BTF", &n, &address) + 24, "TYPE\0a", 7);
	ck_assert_uint_eq(n, 31);

	struct symtab *symtab = symtab_load(image, NULL);

	ck_assert_ptr_nonnull(symtab);
	ck_assert_str_eq(symtab_find(symtab, LINKED + FUNCTION_BYTES + 5)->name, "symbol_1");
	ck_assert_ptr_null(symtab_find(symtab, LINKED + 2 * FUNCTION_BYTES));
	ck_assert_uint_eq(symtab_find_name(symtab, "symbol_2")->address, LINKED + 2 * FUNCTION_BYTES);
	symtab_free(symtab);
}

static void expect_kernel(GByteArray *file, const char *compression)
{
	g_autoptr(GError) error = NULL;
	struct image *image = open_bytes(file, &error);

	ck_assert_msg(image, "%s", error ? error->message : "");
	assert_kernel(image);
	ck_assert_str_eq(image_compression(image) ? image_compression(image) : "none", compression);
	image_free(image);
	g_byte_array_unref(file);
}

static void expect_refused(GByteArray *file, enum image_error code, const char *text)
{
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(open_bytes(file, &error));
	ck_assert_msg(g_error_matches(error, IMAGE_ERROR, (int)code), "code %d: %s", error->code, error->message);
	ck_assert_msg(strstr(error->message, text) != NULL, "%s", error->message);
	g_byte_array_unref(file);
}

START_TEST(link_address_is_that_of_the_relocations_or_the_symbols)
{
	expect_kernel(build(true), "none");
	expect_kernel(build(false), "none");
}
END_TEST

/* zboot-header.S: the size of what was packed is behind the payload, but for gzip. */
static GByteArray *build_zboot(const char *compression)
{
	g_autoptr(GByteArray) kernel = build(true);
	g_autoptr(GByteArray) packed = bzimage_pack(kernel->data, kernel->len, compression);
	GByteArray *file = g_byte_array_new();

	pad(file, 512);
	memcpy(file->data, "MZ\0\0zimg", 8);
	bzimage_put(file, 8, file->len, 4);
	bzimage_put(file, 12, packed->len, 4);
	g_byte_array_append(file, packed->data, packed->len);
	if (strcmp(compression, "gzip") != 0)
		kallsyms_put(file, kernel->len, 4);
	return file;
}

START_TEST(packed_images_are_unpacked)
{
	g_autoptr(GByteArray) kernel = build(true);

	expect_kernel(bzimage_pack(kernel->data, kernel->len, "gzip"), "gzip");
	expect_kernel(build_zboot("gzip"), "gzip");
	expect_kernel(build_zboot("zstd"), "zstd");
}
END_TEST

START_TEST(packed_images_are_refused)
{
	static const uint8_t text[100] = "not a kernel";
	GByteArray *file = build_zboot("zstd");

	g_byte_array_set_size(file, file->len - 1);
	expect_refused(file, IMAGE_ERROR_TRUNCATED, "is outside the file");
	file = build_zboot("gzip");
	bzimage_put(file, 8, 0xffffffff, 4);
	expect_refused(file, IMAGE_ERROR_TRUNCATED, "at 0xffffffff");
	file = build_zboot("gzip");
	bzimage_put(file, 12, 5, 4);
	expect_refused(file, IMAGE_ERROR_PAYLOAD, "not packed with");
	file = build_zboot("gzip");
	memset(file->data + 512 + 20, 0xff, 100);
	expect_refused(file, IMAGE_ERROR_PAYLOAD, "gzip payload");
	expect_refused(bzimage_pack(text, sizeof(text), "gzip"), IMAGE_ERROR_FORMAT, "its payload is neither");
}
END_TEST

START_TEST(headers_are_checked)
{
	GByteArray *file = build(true);

	bzimage_put(file, 24, 1, 1);
	expect_refused(file, IMAGE_ERROR_CLASS, "big-endian");
	file = build(true);
	bzimage_put(file, 16, 4096, 4);
	expect_refused(file, IMAGE_ERROR_SEGMENTS, "says that it has 0x1000 bytes");
	file = build(true);
	bzimage_put(file, 20, 1, 4);
	expect_refused(file, IMAGE_ERROR_SEGMENTS, "0x100040000 bytes");
	file = build(true);
	bzimage_put(file, 8, 0x80001, 4);
	expect_refused(file, IMAGE_ERROR_SEGMENTS, "0x80001 behind");
}
END_TEST

/* The text offset of old kernels moves all of it. */
START_TEST(text_offset_moves_the_image)
{
	g_autoptr(GByteArray) file = build(true);
	size_t n;

	bzimage_put(file, 8, 0x80000, 4);

	struct image *image = open_bytes(file, NULL);

	ck_assert_uint_eq(image_segments(image, &n)->gpa, PLACE + 0x80000);
	ck_assert_uint_eq(image_entry(image), PLACE + 0x80000);
	image_free(image);
}
END_TEST

START_TEST(images_that_do_not_say_where_they_are_linked_are_refused)
{
	GByteArray *file = build(false);

	memset(file->data + word_find(file, LINKED), 0, 8);
	expect_refused(file, IMAGE_ERROR_SEGMENTS, "say where its code is linked");
	/* Relocations outside the image. */
	file = build(true);
	bzimage_put(file, 20 + word_find(file, R_AARCH64_RELATIVE), 0xffff0000, 4);
	expect_refused(file, IMAGE_ERROR_SEGMENTS, "say where its code is linked");
}
END_TEST

START_TEST(cut_anywhere)
{
	g_autoptr(GByteArray) file = build(true);

	for (guint n = 0; n < file->len; n += 97) {
		g_autoptr(GBytes) bytes = g_bytes_new(file->data, n);
		g_autoptr(GError) error = NULL;
		struct image *image = image_new("test-kernel", bytes, &error);

		ck_assert(image || error->domain == IMAGE_ERROR);
		image_free(image);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("image_boot");
	TCase *tcase = tcase_create("image_boot");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, link_address_is_that_of_the_relocations_or_the_symbols);
	tcase_add_test(tcase, packed_images_are_unpacked);
	tcase_add_test(tcase, packed_images_are_refused);
	tcase_add_test(tcase, headers_are_checked);
	tcase_add_test(tcase, text_offset_moves_the_image);
	tcase_add_test(tcase, images_that_do_not_say_where_they_are_linked_are_refused);
	tcase_add_test(tcase, cut_anywhere);
	return run_suite(suite);
}
