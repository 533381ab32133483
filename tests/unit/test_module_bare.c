// SPDX-License-Identifier: BSD-2-Clause
/* What the agent takes off a kernel module: only signature and types, and nothing of a file that is not as it should
 * be. */
#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "elf_builder.h"
#include "module_bare.h"
#include "run_suite.h"

#define MARK "~Module signature appended~\n"
#define SIGNATURE_BYTES 300u /* more than a byte can say */

static const char code[] = "code of a module, which has .BTF in it", types[] = "types";

static GByteArray *module_new(const char *types_section)
{
	struct elf_builder builder;

	elf_builder_init(&builder);
	elf_builder_section(
		&builder, (struct elf_section){.name = ".text", .type = SHT_PROGBITS, .data = code, .n = sizeof(code)});
	elf_builder_section(
		&builder,
		(struct elf_section){.name = ".BTF_ids", .type = SHT_PROGBITS, .data = types, .n = sizeof(types)});
	elf_builder_section(
		&builder,
		(struct elf_section){.name = types_section, .type = SHT_PROGBITS, .data = types, .n = sizeof(types)});
	GByteArray *file = elf_builder_finish(&builder);
	elf_builder_deinit(&builder);
	return file;
}

/* As scripts/sign-file.c of Linux: the signature, struct module_signature, MARK. */
static void sign(GByteArray *file, uint32_t signature_bytes, uint32_t said)
{
	const uint8_t head[12] = {[2] = 2, /* PKCS#7 */
	                          [8] = (uint8_t)(said >> 24),
	                          [9] = (uint8_t)(said >> 16),
	                          [10] = (uint8_t)(said >> 8),
	                          [11] = (uint8_t)said};
	guint at = file->len;

	g_byte_array_set_size(file, at + signature_bytes);
	memset(file->data + at, 's', signature_bytes);
	g_byte_array_append(file, head, sizeof(head));
	g_byte_array_append(file, (const guint8 *)MARK, sizeof(MARK) - 1);
}

/* `change` makes `expected` of `file`. Both are freed. */
static void check_change(bool (*change)(int fd), GByteArray *file, GByteArray *expected)
{
	g_autofree char *path = NULL, *after = NULL;
	gsize n;
	int fd = g_file_open_tmp("vprof-module-XXXXXX", &path, NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, file->data, file->len), (ssize_t)file->len);
	ck_assert(change(fd));
	ck_assert_int_eq(close(fd), 0);
	ck_assert(g_file_get_contents(path, &after, &n, NULL));
	ck_assert_int_eq(g_remove(path), 0);
	ck_assert_uint_eq(n, expected->len);
	ck_assert_mem_eq(after, expected->data, n);
	g_byte_array_unref(file);
	g_byte_array_unref(expected);
}

static void check(GByteArray *file, GByteArray *expected)
{
	check_change(module_bare, file, expected);
}

static void check_unchanged(GByteArray *file)
{
	check(file, g_byte_array_append(g_byte_array_new(), file->data, file->len));
}

START_TEST(signature_and_types_go)
{
	GByteArray *file = module_new(".BTF");

	sign(file, SIGNATURE_BYTES, SIGNATURE_BYTES);
	check(file, module_new(".btf"));
	check(module_new(".BTF"), module_new(".btf"));
}
END_TEST

static bool bare_and_back(int fd)
{
	return module_bare(fd) && module_with_types(fd);
}

START_TEST(types_come_back)
{
	GByteArray *file = module_new(".BTF");

	sign(file, SIGNATURE_BYTES, SIGNATURE_BYTES);
	check_change(bare_and_back, file, module_new(".BTF"));
}
END_TEST

START_TEST(without_types_only_the_signature_goes)
{
	GByteArray *file = module_new(".BTF.ext");

	sign(file, SIGNATURE_BYTES, SIGNATURE_BYTES);
	check(file, module_new(".BTF.ext"));
}
END_TEST

START_TEST(a_signature_longer_than_the_file_stays)
{
	GByteArray *file = module_new(".none");

	sign(file, SIGNATURE_BYTES, UINT32_MAX);
	check_unchanged(file);
	file = module_new(".none");
	sign(file, SIGNATURE_BYTES, file->len + SIGNATURE_BYTES + 1);
	check_unchanged(file);
}
END_TEST

START_TEST(what_is_no_module_stays)
{
	check_unchanged(g_byte_array_append(g_byte_array_new(), (const guint8 *)ELFMAG, SELFMAG));
	check_unchanged(g_byte_array_append(g_byte_array_new(), (const guint8 *)MARK, sizeof(MARK) - 1));
	GByteArray *file = module_new(".BTF");
	elf_header(file)->e_shoff = UINT64_MAX - 64;
	check_unchanged(file);
	file = module_new(".BTF");
	elf_header(file)->e_shstrndx = 0xffff;
	check_unchanged(file);
	file = module_new(".BTF");
	elf_header(file)->e_shentsize = 1;
	check_unchanged(file);
	file = module_new(".BTF"); /* the names of the sections end the file's bytes before their headers */
	g_byte_array_set_size(file, (guint)elf_header(file)->e_shoff + 1);
	check_unchanged(file);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_said)
{
	g_autofree char *path = NULL;
	GByteArray *file = module_new(".BTF");
	int fd = g_file_open_tmp("vprof-module-XXXXXX", &path, NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, file->data, file->len), (ssize_t)file->len);
	ck_assert_int_eq(close(fd), 0);
	fd = g_open(path, O_RDONLY, 0);
	ck_assert(!module_bare(fd));
	ck_assert_int_eq(close(fd), 0);
	ck_assert_int_eq(g_remove(path), 0);
	g_byte_array_unref(file);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("module_bare");
	TCase *tests = tcase_create("module_bare");

	tcase_add_test(tests, signature_and_types_go);
	tcase_add_test(tests, types_come_back);
	tcase_add_test(tests, without_types_only_the_signature_goes);
	tcase_add_test(tests, a_signature_longer_than_the_file_stays);
	tcase_add_test(tests, what_is_no_module_stays);
	tcase_add_test(tests, a_file_that_cannot_be_written_is_said);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
