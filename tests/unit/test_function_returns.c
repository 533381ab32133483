// SPDX-License-Identifier: BSD-2-Clause
/* Where functions return: by RET, by thunks, in parts of their own and in functions that they jump to. */
#include <check.h>
#include <glib.h>
#include <string.h>

#include "lib/code/function_returns.h"
#include "run_suite.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define FUNCTION_BYTES 16u

/* FUNCTION_BYTES of code each. */
static const struct function {
	const char *name;
	uint8_t code[FUNCTION_BYTES];
} functions[] = {
	/* jz +1; ret; ret 8; rep ret; lret is none of them */
	{"returns", {0x74, 0x01, 0xc3, 0xc2, 0x08, 0x00, 0xf3, 0xc3, 0xcb}},
	/* jmp __x86_return_thunk; int3 */
	{"by_thunk", {0xe9, 0x1b, 0x00, 0x00, 0x00, 0xcc}},
	{"__x86_indirect_thunk_rax", {0xc3}},
	{"__x86_return_thunk", {0xc3}},
	/* jne in_parts.cold; jmp to its own begin */
	{"in_parts", {0x0f, 0x85, 0x0a, 0x00, 0x00, 0x00, 0xeb, 0xf8}},
	/* jmp to the other part; ret */
	{"in_parts.cold", {0xeb, 0xee, 0xc3}},
	/* jmp returns */
	{"tail", {0xe9, 0x9b, 0xff, 0xff, 0xff}},
	/* nop; jmp *%rax */
	{"by_pointer", {0x90, 0xff, 0xe0}},
	/* jmp __x86_indirect_thunk_rax */
	{"by_thunk_of_pointer", {0xe9, 0x9b, 0xff, 0xff, 0xff}},
	/* ud2 */
	{"never", {0x0f, 0x0b}},
	/* push %es, which 64-bit code does not have */
	{"data", {0x06}},
	/* jmp behind all functions */
	{"nowhere", {0xe9, 0x00, 0x10, 0x00, 0x00}},
	{"often", {0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3}},
	/* jmp often, behind a return of its own */
	{"too_often", {0xc3, 0xeb, 0xed}},
};

static struct symtab *symtab;
static bool unreadable;

static void list(struct symtab_builder *builder, void *data G_GNUC_UNUSED)
{
	for (size_t i = 0; i < G_N_ELEMENTS(functions); i++)
		symtab_add(builder, TEXT + i * FUNCTION_BYTES, FUNCTION_BYTES, 'T', functions[i].name, false);
}

static void setup(void)
{
	const struct symtab_code code = {TEXT, sizeof(functions) / sizeof(functions[0]) * FUNCTION_BYTES};

	symtab = symtab_new_list("test", &code, 1, UINT64_MAX, list, NULL);
	unreadable = false;
}

static void teardown(void)
{
	symtab_free(symtab);
}

/* The rest of each function is NOP. */
static bool read_code(void *data G_GNUC_UNUSED, uint64_t from, uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct function *function = &functions[(from + i - TEXT) / FUNCTION_BYTES];
		const uint8_t byte = function->code[(from + i - TEXT) % FUNCTION_BYTES];

		code[i] = byte != 0 || i < 9 ? byte : 0x90;
	}
	return !unreadable;
}

static const struct symbol *find_symbol(void *data, uint64_t address)
{
	return symtab_find(data, address);
}

static char *find(const char *name, struct function_returns *returns)
{
	const struct function_code code = {.find = find_symbol, .read = read_code, .data = symtab};

	return function_returns_find(code_of(ARCH_X86_64), symtab_address(symtab, name), &code, returns);
}

static void assert_returns(const char *name, size_t n, const uint64_t *at)
{
	struct function_returns returns;
	g_autofree char *why = find(name, &returns);

	ck_assert_msg(!why, "%s %s", name, why);
	ck_assert_uint_eq(returns.n, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(returns.at[i], TEXT + at[i]);
}

START_TEST(all_returns_are_found)
{
	assert_returns("returns", 3, (const uint64_t[]){2, 3, 6});
	assert_returns("by_thunk", 1, (const uint64_t[]){0x10});
	assert_returns("in_parts", 1, (const uint64_t[]){0x52});
	assert_returns("tail", 3, (const uint64_t[]){2, 3, 6});
	assert_returns("often", FUNCTION_RETURNS_MAX,
	               (const uint64_t[]){0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc,
	                                  0xcd, 0xce, 0xcf});
}
END_TEST

START_TEST(functions_without_known_returns_are_refused)
{
	static const struct {
		const char *name, *why;
	} cases[] = {
		{"by_pointer", "ends by a jump through a pointer, at 0xffffffff81000071"},
		{"by_thunk_of_pointer", "ends by a jump through a pointer, at 0xffffffff81000080"},
		{"never", "never returns"},
		{"data", "is in data, which is not code only"},
		{"nowhere", "where no function is known"},
		{"too_often", "returns in more than 16 places"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct function_returns returns;
		g_autofree char *why = find(cases[i].name, &returns);

		ck_assert_msg(why && strstr(why, cases[i].why), "%s %s", cases[i].name, why ? why : "returns");
	}
	unreadable = true;
	struct function_returns returns;
	g_autofree char *why = find("returns", &returns);
	ck_assert_str_eq(why, "is in returns, which cannot be read now");
}
END_TEST

/* ---- arm64 ---- */

/* Four instructions each. */
static const struct function_arm64 {
	const char *name;
	uint32_t code[4];
} arm64_functions[] = {
	/* cbz x0, +8; ret; retaa; ret x9 */
	{"returns", {0xb4000040, 0xd65f03c0, 0xd65f0bff, 0xd65f0120}},
	/* b.eq and tbnz to returns; b to its own begin */
	{"tail", {0x54ffff80, 0x3707ff60, 0x17fffffe, 0xd503201f}},
	/* br x16; blr is a call */
	{"by_pointer", {0xd63f0200, 0xd61f0200, 0xd503201f, 0xd503201f}},
	{"never", {0xd4210000, 0xd503201f, 0xd503201f, 0xd503201f}},
};

static void list_arm64(struct symtab_builder *builder, void *data G_GNUC_UNUSED)
{
	for (size_t i = 0; i < G_N_ELEMENTS(arm64_functions); i++)
		symtab_add(builder, TEXT + i * sizeof(arm64_functions[i].code), sizeof(arm64_functions[i].code), 'T',
		           arm64_functions[i].name, false);
}

static bool read_arm64(void *data G_GNUC_UNUSED, uint64_t from, uint8_t *code, size_t n)
{
	memcpy(code, arm64_functions[(from - TEXT) / sizeof(arm64_functions[0].code)].code, n);
	return true;
}

static char *find_arm64(const char *name, struct function_returns *returns)
{
	const struct symtab_code code = {TEXT, G_N_ELEMENTS(arm64_functions) * sizeof(arm64_functions[0].code)};
	struct symtab *of_arm64 = symtab_new_list("test", &code, 1, UINT64_MAX, list_arm64, NULL);
	const struct function_code known = {.find = find_symbol, .read = read_arm64, .data = of_arm64};
	char *why = function_returns_find(code_of(ARCH_ARM64), symtab_address(of_arm64, name), &known, returns);

	symtab_free(of_arm64);
	return why;
}

START_TEST(returns_of_arm64)
{
	static const char *const names[] = {"returns", "tail"};
	struct function_returns returns;

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autofree char *why = find_arm64(names[i], &returns);

		ck_assert_msg(!why, "%s %s", names[i], why);
		ck_assert_uint_eq(returns.n, 3);
		for (size_t n = 0; n < returns.n; n++)
			ck_assert_uint_eq(returns.at[n], TEXT + 4 * (n + 1));
	}
	g_autofree char *pointer = find_arm64("by_pointer", &returns);
	ck_assert_str_eq(pointer, "ends by a jump through a pointer, at 0xffffffff81000024");
	g_autofree char *never = find_arm64("never", &returns);
	ck_assert_str_eq(never, "never returns");
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("function_returns");
	TCase *tc = tcase_create("function_returns");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, all_returns_are_found);
	tcase_add_test(tc, returns_of_arm64);
	tcase_add_test(tc, functions_without_known_returns_are_refused);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
