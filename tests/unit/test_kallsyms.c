// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>

#include "kallsyms_builder.h"
#include "lib/symbol/kallsyms.h"
#include "lib/symbol/symtab.h"
#include "run_suite.h"

#define GVA UINT64_C(0xffffffff82000000)
#define N_SYMBOLS 1000u

/* n symbols by address, from per-CPU ones (if `percpu`) on; every 100th name takes more than 127 codes. */
static struct kallsyms_symbol *make_symbols(uint32_t n, bool percpu)
{
	struct kallsyms_symbol *symbols = g_new0(struct kallsyms_symbol, n);
	char long_name[201] = "";

	for (unsigned i = 0; i + 1 < sizeof(long_name); i++)
		long_name[i] = (char)('a' + i % 26);
	for (uint32_t i = 0; i < n; i++) {
		g_autofree char *number = g_strdup_printf("symbol_%u", i);

		if (percpu && i < 10)
			symbols[i] = (struct kallsyms_symbol){i * 64, g_strdup_printf("Apercpu_%u", i)};
		else
			symbols[i] = (struct kallsyms_symbol){
				UINT64_C(0xffffffff81000000) + i / 2 * 48, /* two at each address */
				g_strdup_printf("%c%s%s", "TtWd"[i % 4], i % 5 == 0 ? "do_" : "sys_",
			                        i % 100 == 0 ? long_name : number)};
	}
	return symbols;
}

static void free_symbols(struct kallsyms_symbol *symbols, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		g_free((char *)symbols[i].text);
	g_free(symbols);
}

/* What a decoding must bring, in order. */
struct expected {
	const struct kallsyms_symbol *symbols;
	uint32_t n;
	uint32_t got;
};

static void compare(uint64_t address, char type, const char *name, void *data)
{
	struct expected *expected = data;

	ck_assert_uint_lt(expected->got, expected->n);

	const struct kallsyms_symbol *symbol = &expected->symbols[expected->got++];

	ck_assert_str_eq(name, symbol->text + 1);
	ck_assert_int_eq(type, symbol->text[0]);
	ck_assert_uint_eq(address, symbol->address);
}

static void count(uint64_t address, char type, const char *name, void *data)
{
	uint32_t *n = data;

	(void)address, (void)type, (void)name;
	(*n)++;
}

/* Rubbish of 8 * 512 bytes, then the tables. */
static GByteArray *build(const struct kallsyms_layout *layout, const struct kallsyms_symbol *symbols, uint32_t n)
{
	GByteArray *out = g_byte_array_new();

	for (uint32_t i = 0; i < 512; i++)
		kallsyms_put(out, i % 3 == 0 ? i : i * UINT64_C(0x9e3779b97f4a7c15), 8);
	kallsyms_build(out, layout, GVA, symbols, n);
	kallsyms_put(out, UINT64_MAX, 8);
	return out;
}

START_TEST(test_layout)
{
	const struct kallsyms_layout *layout = &KALLSYMS_LAYOUTS[_i];
	bool percpu = layout->addresses == KALLSYMS_ABSOLUTE_PERCPU || layout->addresses == KALLSYMS_ABSOLUTE;
	/* Counts around a whole marker, and all remainders of the alignment. */
	static const uint32_t counts[] = {257, 511, 512, 513, 768, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007};

	for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
		struct expected expected = {make_symbols(counts[i], percpu), counts[i], 0};
		g_autoptr(GByteArray) bytes = build(layout, expected.symbols, expected.n);
		g_autoptr(GError) error = NULL;

		uint64_t steps = KALLSYMS_STEPS_MAX;

		ck_assert_msg(kallsyms_decode(bytes->data, bytes->len, GVA, &steps, compare, &expected, &error),
		              "%s, %u: %s", layout->name, counts[i], error ? error->message : "");
		ck_assert_uint_eq(expected.got, expected.n);
		free_symbols((struct kallsyms_symbol *)expected.symbols, expected.n);
	}
}
END_TEST

/* A prefix either has all tables or is refused, and no call has been made then. */
START_TEST(test_cut_anywhere)
{
	const struct kallsyms_layout *layout = &KALLSYMS_LAYOUTS[_i];
	struct kallsyms_symbol *symbols = make_symbols(300, false);
	g_autoptr(GByteArray) bytes = g_byte_array_new();

	kallsyms_build(bytes, layout, GVA, symbols, 300);
	for (guint n = 0; n < bytes->len; n += 41) {
		g_autofree uint8_t *cut = g_memdup2(bytes->data, n);
		g_autoptr(GError) error = NULL;
		uint64_t steps = KALLSYMS_STEPS_MAX;
		uint32_t calls = 0;
		bool ok = kallsyms_decode(cut, n, GVA, &steps, count, &calls, &error);

		ck_assert_uint_eq(calls, ok ? 300 : 0);
		ck_assert(ok || error->domain == SYMTAB_ERROR);
		ck_assert(!ok || (layout->addresses_last && n > bytes->len - 300 * 3 - 8));
	}
	free_symbols(symbols, 300);
}
END_TEST

static void assert_fails(const GByteArray *bytes, enum symtab_error code, const char *text)
{
	g_autoptr(GError) error = NULL;
	uint64_t steps = KALLSYMS_STEPS_MAX;
	uint32_t calls = 0;

	ck_assert(!kallsyms_decode(bytes->data, bytes->len, GVA, &steps, count, &calls, &error));
	ck_assert_msg(g_error_matches(error, SYMTAB_ERROR, (int)code), "%s", error->message);
	ck_assert_msg(strstr(error->message, text) != NULL, "%s", error->message);
	ck_assert_uint_eq(calls, 0);
}

/* Finds the only place of `text` in the tables. */
static uint8_t *find(const GByteArray *bytes, const char *text, size_t n)
{
	uint8_t *at = memmem(bytes->data, bytes->len, text, n);

	ck_assert_ptr_nonnull(at);
	return at;
}

START_TEST(test_corrupt)
{
	const struct kallsyms_layout *layout = &KALLSYMS_LAYOUTS[_i];
	struct kallsyms_symbol *symbols = make_symbols(N_SYMBOLS, false);
	g_autoptr(GByteArray) tokens = build(layout, symbols, N_SYMBOLS);
	g_autoptr(GByteArray) names = build(layout, symbols, N_SYMBOLS);
	g_autoptr(GByteArray) addresses = g_byte_array_new();

	*find(tokens, "0\0001\0002", 5) = 'x';
	assert_fails(tokens, SYMTAB_ERROR_NONE, "no kallsyms token table");

	/* The first name's length (two bytes and the token "Tdo_" before its letters) becomes 0, which no name has. */
	find(names, "abcdefghijkl", 12)[-3] = 0;
	assert_fails(names, SYMTAB_ERROR_CORRUPT, "no names are before it");

	symbols[N_SYMBOLS / 2].address -= 0x10000;
	kallsyms_build(addresses, layout, GVA, symbols, N_SYMBOLS);
	assert_fails(addresses, SYMTAB_ERROR_CORRUPT, "no addresses of a known layout");
	free_symbols(symbols, N_SYMBOLS);
}
END_TEST

START_TEST(test_name_too_long)
{
	struct kallsyms_symbol *symbols = make_symbols(N_SYMBOLS, false);
	g_autoptr(GByteArray) bytes = NULL;
	g_autofree char *name = g_strnfill(600, 's');

	name[0] = 'T';
	g_free((char *)symbols[77].text);
	symbols[77].text = g_steal_pointer(&name);
	bytes = build(&KALLSYMS_LAYOUTS[2], symbols, N_SYMBOLS);
	assert_fails(bytes, SYMTAB_ERROR_CORRUPT, "symbol 77 of 1000");
	free_symbols(symbols, N_SYMBOLS);
}
END_TEST

START_TEST(test_nothing)
{
	g_autoptr(GByteArray) bytes = g_byte_array_new();

	assert_fails(bytes, SYMTAB_ERROR_NONE, "0x0 bytes");
	/* Digits in a row, but no index behind them: as any table of strings may have. */
	for (unsigned i = 0; i < 10; i++)
		g_byte_array_append(bytes, (const uint8_t *)"0\0001\0002\0003\0004\0005\0006\0007\0008\0009", 20);
	assert_fails(bytes, SYMTAB_ERROR_NONE, "0xc8 bytes");
}
END_TEST

/* What looks like tables all over is given up, and takes nothing of the steps of what comes before it. */
START_TEST(test_look_alikes)
{
	const guint n = 16 << 20;
	struct expected expected = {make_symbols(N_SYMBOLS, false), N_SYMBOLS, 0};
	g_autoptr(GByteArray) bytes = build(&KALLSYMS_LAYOUTS[2], expected.symbols, expected.n);
	uint64_t steps = KALLSYMS_STEPS_MAX;
	g_autoptr(GError) error = NULL;

	const guint before = bytes->len;

	g_byte_array_set_size(bytes, before + n);
	for (size_t i = 0; i < n; i++)
		bytes->data[before + i] = i % 2 == 0 ? (uint8_t)('0' + i / 2 % 10) : 0;
	ck_assert(kallsyms_decode(bytes->data, bytes->len, GVA, &steps, compare, &expected, &error));
	ck_assert_uint_gt(steps, KALLSYMS_STEPS_MAX / 2);
	ck_assert(!kallsyms_decode(bytes->data + before, n, GVA, &steps, compare, &expected, &error));
	ck_assert(g_error_matches(error, SYMTAB_ERROR, SYMTAB_ERROR_NONE));
	ck_assert_msg(strstr(error->message, "was given up") != NULL, "%s", error->message);
	ck_assert_uint_eq(steps, 0);
	free_symbols((struct kallsyms_symbol *)expected.symbols, expected.n);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kallsyms");
	TCase *tcase = tcase_create("kallsyms");

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, test_layout, 0, G_N_ELEMENTS(KALLSYMS_LAYOUTS));
	tcase_add_loop_test(tcase, test_cut_anywhere, 0, G_N_ELEMENTS(KALLSYMS_LAYOUTS));
	tcase_add_loop_test(tcase, test_corrupt, 0, G_N_ELEMENTS(KALLSYMS_LAYOUTS));
	tcase_add_test(tcase, test_name_too_long);
	tcase_add_test(tcase, test_nothing);
	tcase_add_test(tcase, test_look_alikes);
	return run_suite(suite);
}
