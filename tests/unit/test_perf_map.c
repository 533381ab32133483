// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <glib.h>
#include <string.h>

#include "lib/symbol/perf_map.h"
#include "run_suite.h"

static void check_at(const struct perf_map *map, uint64_t address, const char *name)
{
	struct perf_map_symbol symbol;

	ck_assert_int_eq(perf_map_find(map, address, &symbol), name != NULL);
	if (name)
		ck_assert_str_eq(symbol.name, name);
}

START_TEST(functions_are_where_lines_say)
{
	const char *text = "7f0010 10 Foo::bar(int)\n"
			   "1000 20 early\n"
			   "ffffffffffffff00 100 last\n";
	struct perf_map *map = perf_map_new(text, strlen(text));
	struct perf_map_symbol symbol;

	ck_assert_uint_eq(perf_map_n_symbols(map), 3);
	check_at(map, 0xfff, NULL);
	check_at(map, 0x1000, "early");
	check_at(map, 0x101f, "early");
	check_at(map, 0x1020, NULL);
	check_at(map, UINT64_MAX, "last");
	ck_assert(perf_map_find(map, 0x7f001f, &symbol));
	ck_assert_str_eq(symbol.name, "Foo::bar(int)");
	ck_assert_uint_eq(symbol.start, 0x7f0010);
	ck_assert_uint_eq(symbol.size, 0x10);
	perf_map_free(map);
}
END_TEST

START_TEST(what_comes_later_takes_the_place)
{
	const char *text = "1000 100 first\n"
			   "1000 20 second\n"
			   "1080 10 third\n"
			   "1040 20 fourth\n"
			   "1000 8 fifth\n";
	struct perf_map *map = perf_map_new(text, strlen(text));

	check_at(map, 0x1000, "fifth");
	check_at(map, 0x1008, "second");
	check_at(map, 0x1020, "first");
	check_at(map, 0x1048, "fourth");
	check_at(map, 0x1088, "third");
	check_at(map, 0x1090, "first");
	perf_map_free(map);
}
END_TEST

START_TEST(other_lines_are_left_out)
{
	static const char *const lines[] = {
		"\n",
		"1000\n",
		"1000 10\n",
		"1000 10 \n",
		"0x1000 10 name\n",
		" 1000 10 a\n",
		"1000 0 name\n",
		"1000 zz a\n",
		"11000000000000000 1 a\n",
		"ffffffffffffffff 2 a\n",
		"1000 10 cut",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
		struct perf_map *map = perf_map_new(lines[i], strlen(lines[i]));

		ck_assert_msg(perf_map_n_symbols(map) == 0, "%s", lines[i]);
		check_at(map, 0x1000, NULL);
		perf_map_free(map);
	}
}
END_TEST

START_TEST(names_are_printable)
{
	const char *text = "1000 10 a\033[31m\xff b\n";
	struct perf_map *map = perf_map_new(text, strlen(text));

	check_at(map, 0x1000, "a?[31m? b");
	perf_map_free(map);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("perf_map");
	TCase *tests = tcase_create("perf_map");

	tcase_add_test(tests, functions_are_where_lines_say);
	tcase_add_test(tests, what_comes_later_takes_the_place);
	tcase_add_test(tests, other_lines_are_left_out);
	tcase_add_test(tests, names_are_printable);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
