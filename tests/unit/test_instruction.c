// SPDX-License-Identifier: BSD-2-Clause
/* Lengths of instructions: forms by hand, and the C library as objdump divides it. */
#include <check.h>
#include <dlfcn.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "lib/code/x86/instruction.h"
#include "run_suite.h"

/* `text`: an instruction in hexadecimal. The bytes behind it do not matter. */
static void assert_one(const char *text)
{
	uint8_t bytes[32];
	size_t n = 0;

	for (const char *at = text; *at != '\0'; at += strspn(at, " "), n++)
		bytes[n] = (uint8_t)g_ascii_strtoull(at, (char **)&at, 16);
	memset(bytes + n, 0xff, sizeof(bytes) - n);
	ck_assert_msg(instruction_length(bytes, sizeof(bytes)) == n, "%s: %zu", text,
	              instruction_length(bytes, sizeof(bytes)));
	ck_assert_uint_eq(instruction_length(bytes, n), n);
	ck_assert_uint_eq(instruction_length(bytes, n - 1), 0);
}

START_TEST(every_form)
{
	static const char *const texts[] = {
		"90",
		"c3",
		"cc",
		"0f 0b",
		"f4",
		"c2 08 00",
		"c8 10 00 00",
		"ca 08 00",
		"89 c8",
		"8b 04 24",
		"8b 44 24 08",
		"8b 84 24 00 01 00 00",
		"8b 04 25 00 00 00 00",
		"8b 05 00 00 00 00",
		"48 8b 45 f8",
		"41 8b 80 00 01 00 00",
		"8b 04 ad 00 00 00 00",
		"8b 44 ad 00",
		"b8 01 00 00 00",
		"48 b8 01 02 03 04 05 06 07 08",
		"66 b8 01 00",
		"b0 01",
		"48 c7 c0 01 00 00 00",
		"66 c7 00 01 00",
		"48 a1 01 02 03 04 05 06 07 08",
		"67 a1 01 02 03 04",
		"f6 c1 01",
		"f6 d9",
		"f7 c1 01 00 00 00",
		"66 f7 c1 01 00",
		"f7 d9",
		"6a 01",
		"68 01 00 00 00",
		"66 68 01 00",
		"e8 00 00 00 00",
		"66 66 48 e8 00 00 00 00",
		"eb 00",
		"0f 84 00 00 00 00",
		"ff 15 00 00 00 00",
		"f3 0f 1e fa",
		"0f 1f 44 00 00",
		"66 2e 0f 1f 84 00 00 00 00 00",
		"f0 48 0f b1 17",
		"3e ff e0",
		"0f a4 c1 03",
		"0f ba e0 03",
		"0f c2 c1 03",
		"0f 38 00 c1",
		"66 0f 3a 0f c1 04",
		"0f 01 ca",
		"0f 05",
		"0f ae f0",
		"c5 f8 77",
		"c5 f9 6f 06",
		"c5 f9 70 c1 01",
		"c4 e2 79 00 c1",
		"c4 e3 79 0f c1 04",
		"c4 c1 7a 6f 06",
		"62 f1 7c 48 10 06",
		"62 f3 75 48 0f c2 04",
		"62 f5 7c 48 58 c1",
		"8f 00",
		"8f e8 78 a2 c0 00",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		assert_one(texts[i]);
}
END_TEST

START_TEST(what_is_no_instruction)
{
	static const uint8_t none[][16] = {{0x06}, {0x62, 0xf4}, {0x9a}, {0xc4, 0x00}, {0x0f, 0x04}, {0x8f, 0x20}};
	uint8_t prefixes[16];

	for (size_t i = 0; i < G_N_ELEMENTS(none); i++)
		ck_assert_uint_eq(instruction_length(none[i], sizeof(none[i])), 0);
	memset(prefixes, 0x66, sizeof(prefixes));
	ck_assert_uint_eq(instruction_length(prefixes, sizeof(prefixes)), 0);
	prefixes[14] = 0x90;
	ck_assert_uint_eq(instruction_length(prefixes, sizeof(prefixes)), 15);
	ck_assert_uint_eq(instruction_length(prefixes, 0), 0);
}
END_TEST

START_TEST(opcodes_behind_prefixes)
{
	static const struct {
		uint8_t bytes[8];
		size_t n, opcode;
	} cases[] = {
		{{0xc3}, 1, 0},
		{{0xf3, 0xc3}, 2, 1}, /* REP RET */
		{{0x66, 0x66, 0x48, 0xe8}, 8, 3},
		{{0x2e, 0x41, 0xff, 0xe3}, 4, 2},
		{{0x0f, 0x48, 0x66}, 3, 0},
		{{0x66, 0x66}, 2, 1},
		{{0x66}, 0, 0},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_uint_eq(instruction_opcode(cases[i].bytes, cases[i].n), cases[i].opcode);
}
END_TEST

/* "  address:\tbytes \tinstruction"; returns how many bytes. */
static size_t read_bytes(char *line, uint8_t bytes[16])
{
	g_auto(GStrv) fields = g_strsplit(line, "\t", 3);
	size_t n = 0;

	if (g_strv_length(fields) < 3 || strstr(fields[2], "(bad)") || g_str_has_prefix(fields[2], "rex"))
		return 0;
	g_auto(GStrv) words = g_strsplit(g_strstrip(fields[1]), " ", -1);
	for (; words[n] && n < 16; n++)
		bytes[n] = (uint8_t)g_ascii_strtoull(words[n], NULL, 16);
	return n;
}

START_TEST(a_library_as_objdump_divides_it)
{
	char line[512];
	Dl_info library;
	unsigned long compared = 0;

	ck_assert(dladdr((void *)(uintptr_t)memcpy, &library) != 0);
	g_autofree char *objdump = g_find_program_in_path("objdump");
	if (!objdump)
		return;
	g_autofree char *command = g_strdup_printf("objdump -d -w -z -j .text '%s'", library.dli_fname);
	FILE *listing = popen(command, "r");

	ck_assert_ptr_nonnull(listing);
	while (fgets(line, sizeof(line), listing)) {
		uint8_t bytes[16];
		size_t n = read_bytes(line, bytes);

		if (n == 0)
			continue;
		ck_assert_msg(instruction_length(bytes, n) == n, "%s", line);
		compared++;
	}
	ck_assert_int_eq(pclose(listing), 0);
	ck_assert_uint_gt(compared, 100000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("instruction");
	TCase *tests = tcase_create("instruction");

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, every_form);
	tcase_add_test(tests, what_is_no_instruction);
	tcase_add_test(tests, opcodes_behind_prefixes);
	tcase_add_test(tests, a_library_as_objdump_divides_it);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
