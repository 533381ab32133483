// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <glib.h>
#include <string.h>

#include "lib/symbol/perf_map.h"
#include "run_suite.h"

/* As vprof-parse says it. */
static struct perf_map *map_of_bytes(const void *file, size_t bytes)
{
	g_autoptr(GBytes) answer = g_byte_array_free_to_bytes(perf_map_encode(file, bytes, PERF_MAP_BYTES_MAX));
	struct perf_map *map = perf_map_decode(answer);

	ck_assert(map);
	return map;
}

static struct perf_map *map_of(const char *text)
{
	return map_of_bytes(text, strlen(text));
}

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
	struct perf_map *map = map_of(text);
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
	struct perf_map *map = map_of(text);

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
		struct perf_map *map = map_of(lines[i]);

		ck_assert_msg(perf_map_n_symbols(map) == 0, "%s", lines[i]);
		check_at(map, 0x1000, NULL);
		perf_map_free(map);
	}
}
END_TEST

START_TEST(names_are_printable)
{
	const char *text = "1000 10 a\033[31m\xff b\n";
	struct perf_map *map = map_of(text);

	check_at(map, 0x1000, "a?[31m? b");
	perf_map_free(map);
}
END_TEST

struct dump {
	uint8_t bytes[1024];
	size_t n;
};

static void dump_put(struct dump *dump, const void *bytes, size_t n)
{
	memcpy(dump->bytes + dump->n, bytes, n);
	dump->n += n;
}

/* As Linux's jitdump-specification.txt has the header of a file. */
static void dump_begin(struct dump *dump)
{
	const struct {
		uint32_t magic, version, bytes, machine, pad, pid;
		uint64_t timestamp, flags;
	} header = {0x4a695444, 1, sizeof(header), 62, 0, 7, 1, 0};

	dump->n = 0;
	dump_put(dump, &header, sizeof(header));
}

static void dump_load(struct dump *dump, uint64_t address, uint64_t index, const char *name)
{
	const uint8_t code[16] = {0xc3};
	const struct {
		uint32_t kind, bytes;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, address, size, index;
	} load = {0,       (uint32_t)(sizeof(load) + strlen(name) + 1 + sizeof(code)),
	          5,       7,
	          7,       address,
	          address, sizeof(code),
	          index};

	dump_put(dump, &load, sizeof(load));
	dump_put(dump, name, strlen(name) + 1);
	dump_put(dump, code, sizeof(code));
}

static void dump_move(struct dump *dump, uint64_t from, uint64_t to, uint64_t index)
{
	const struct {
		uint32_t kind, bytes;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, from, to, size, index;
	} move = {1, sizeof(move), 6, 7, 7, to, from, to, 16, index};

	dump_put(dump, &move, sizeof(move));
}

START_TEST(a_jitdump)
{
	const uint32_t other[] = {2, 24, 0, 0, 1, 1}; /* JIT_CODE_DEBUG_INFO */
	struct perf_map_symbol symbol;
	struct dump dump;

	dump_begin(&dump);
	dump_load(&dump, 0x1000, 1, "first");
	dump_put(&dump, other, sizeof(other));
	dump_load(&dump, 0x2000, 2, "se\033cond");
	dump_move(&dump, 0x1000, 0x3000, 1);
	dump_load(&dump, 0x1008, 3, "third");
	dump_move(&dump, 0x9000, 0x4000, 9);
	struct perf_map *map = map_of_bytes(dump.bytes, dump.n);

	ck_assert_uint_eq(perf_map_n_symbols(map), 4);
	check_at(map, 0x1007, "first");
	check_at(map, 0x1008, "third");
	check_at(map, 0x2008, "se?cond");
	check_at(map, 0x3001, "first");
	check_at(map, 0x4000, NULL);
	ck_assert(perf_map_find(map, 0x3005, &symbol) && symbol.start == 0x3000 && symbol.size == 16);
	perf_map_free(map);
}
END_TEST

/* Wherever a jitdump ends, what is whole in it is taken. */
START_TEST(a_jitdump_that_is_cut_off)
{
	struct dump dump;

	dump_begin(&dump);
	dump_load(&dump, 0x1000, 1, "first");
	const size_t whole = dump.n;

	dump_load(&dump, 0x2000, 2, "second");
	for (size_t n = 4; n < dump.n; n++) {
		g_autofree char *cut = g_memdup2(dump.bytes, n);
		struct perf_map *map = map_of_bytes(cut, n);

		ck_assert_uint_eq(perf_map_n_symbols(map), n >= whole);
		perf_map_free(map);
	}
	memset(dump.bytes + whole, 0, dump.n - whole);
	struct perf_map *map = map_of_bytes(dump.bytes, dump.n);

	ck_assert_uint_eq(perf_map_n_symbols(map), 1);
	perf_map_free(map);
}
END_TEST

/* From the first one on that has no room. */
START_TEST(what_does_not_fit_is_counted)
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (unsigned i = 0; i < 100; i++)
		g_string_append_printf(text, "%x 10 function_%02u\n", 0x1000 + i * 0x10, i);
	g_autoptr(GBytes) answer = g_byte_array_free_to_bytes(perf_map_encode(text->str, text->len, 1024));
	struct perf_map *map = perf_map_decode(answer);
	const size_t n = perf_map_n_symbols(map);

	ck_assert_uint_le(g_bytes_get_size(answer), 1024);
	ck_assert_uint_gt(n, 10);
	ck_assert_uint_eq(n + perf_map_left_out(map), 100);
	check_at(map, 0x1000, "function_00");
	check_at(map, 0x1000 + n * 0x10, NULL);
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
	tcase_add_test(tests, a_jitdump);
	tcase_add_test(tests, a_jitdump_that_is_cut_off);
	tcase_add_test(tests, what_does_not_fit_is_counted);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
