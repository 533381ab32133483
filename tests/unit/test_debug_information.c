// SPDX-License-Identifier: BSD-2-Clause
/* What vprof-parse says of debug information, of this program's own: structures, and the lines of a function. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "guest/dwarf_types.h"
#include "lib/symbol/image.h"
#include "lib/symbol/source_lines.h"
#include "lib/symbol/symtab.h"
#include "run_suite.h"

struct known_inner {
	int first;
	unsigned long second;
};

struct known_outer {
	char letter;
	struct known_inner inner;
	union {
		short in_union;
		struct {
			int nested, second_nested;
		};
	};
	unsigned bits : 3;
	char last[7];
};

enum { KNOWN_LINE = __LINE__ + 1 };
__attribute__((noinline, used)) static int known_function(const struct known_outer *outer)
{
	return outer->last[3] + outer->inner.first;
}
enum { KNOWN_LAST_LINE = __LINE__ - 1 };

static struct image *self_open(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	g_autoptr(GError) error = NULL;
	struct image *image = image_open_fd("this program", IMAGE_PROGRAM, fd, &error);

	ck_assert_msg(image != NULL, "%s", error ? error->message : "");
	close(fd);
	return image;
}

#define ASSERT_MEMBER(types, type, member)                                             \
	do {                                                                           \
		uint32_t offset = 0, bytes = 0;                                        \
		ck_assert(dwarf_types_member(types, #type, #member, &offset, &bytes)); \
		ck_assert_uint_eq(offset, offsetof(struct type, member));              \
		ck_assert_uint_eq(bytes, sizeof(((struct type *)NULL)->member));       \
	} while (0)

START_TEST(members_are_where_the_compiler_has_them)
{
	struct image *image = self_open();
	g_autoptr(GError) error = NULL;
	struct dwarf_types *types = dwarf_types_new(image, &error);
	uint32_t value;

	ck_assert_msg(types != NULL, "%s", error ? error->message : "no debug information");
	ASSERT_MEMBER(types, known_outer, letter);
	ASSERT_MEMBER(types, known_outer, inner);
	ASSERT_MEMBER(types, known_outer, in_union);
	ASSERT_MEMBER(types, known_outer, second_nested);
	ASSERT_MEMBER(types, known_outer, last);
	ASSERT_MEMBER(types, known_inner, second);
	ck_assert(!dwarf_types_member(types, "known_outer", "bits", &value, &value));
	ck_assert(!dwarf_types_member(types, "known_outer", "second", &value, &value));
	ck_assert(!dwarf_types_member(types, "task_struct", "pid", &value, &value));
	ck_assert(dwarf_types_size(types, "known_outer", &value));
	ck_assert_uint_eq(value, sizeof(struct known_outer));
	ck_assert(!dwarf_types_size(types, "no_such", &value));
	dwarf_types_free(types);
	image_free(image);
}
END_TEST

START_TEST(lines_of_a_function)
{
	struct image *image = self_open();
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = symtab_load(image, &error);

	ck_assert_msg(symtab != NULL, "%s", error ? error->message : "");
	const struct symbol *function = symtab_find_name(symtab, "known_function");
	struct source_lines *lines = source_lines_new(image, function->address, function->size, &error);
	const char *file;
	int line, last = 0;
	uint64_t known = 0;

	ck_assert_msg(lines != NULL, "%s", error ? error->message : "no debug information");
	for (uint64_t at = function->address; at < function->address + function->size; at++) {
		/* What a sanitizer adds has no line. */
		if (!source_lines_find(lines, at, &file, &line))
			continue;
		known++;
		ck_assert_msg(g_str_has_suffix(file, "/test_debug_information.c"), "%s", file);
		ck_assert_int_ge(line, KNOWN_LINE);
		ck_assert_int_le(line, KNOWN_LAST_LINE);
		last = MAX(last, line);
	}
	ck_assert_int_gt(last, KNOWN_LINE);
	ck_assert_uint_gt(known, function->size / 2);
	ck_assert(!source_lines_find(lines, function->address - 1, &file, &line));
	ck_assert(!source_lines_find(lines, function->address + function->size, &file, &line));
	source_lines_free(lines);
	symtab_free(symtab);
	image_free(image);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("debug_information");
	TCase *tests = tcase_create("debug_information");

	(void)known_function(&(struct known_outer){0});
	tcase_add_test(tests, members_are_where_the_compiler_has_them);
	tcase_add_test(tests, lines_of_a_function);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
