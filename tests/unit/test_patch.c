// SPDX-License-Identifier: BSD-2-Clause
/* Breakpoints in the guest's code: one byte is changed and put back, unless it is the guest's own by then. */
#include "kvm/vcpu/patch.h"

#include <string.h>

#include "run_suite.h"

#define AT ((gva_t){0xffffffff81000000})
#define ALIAS ((gva_t){0xffff888001000000})

#define INT3 0xccu

static const struct patch_trap int3 = {.code = INT3, .bytes = 1};
static struct patches patches;
static uint8_t code[2];

static void setup(void)
{
	patches_init(&patches, &int3);
	code[0] = 0x55;
	code[1] = 0x90;
}

static void teardown(void)
{
	patches_deinit(&patches);
}

START_TEST(the_last_user_puts_it_back)
{
	ck_assert(patches_insert(&patches, AT, &code[0]));
	ck_assert_uint_eq(code[0], INT3);
	ck_assert_uint_eq(code[1], 0x90);
	ck_assert(patches_insert(&patches, AT, &code[0]));
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[0], INT3);
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[0], 0x55);
	ck_assert(!patches_cover(&patches, AT, &code[0]));
}
END_TEST

START_TEST(an_int3_is_not_patched)
{
	code[0] = INT3;
	ck_assert(!patches_insert(&patches, AT, &code[0]));
	ck_assert_uint_eq(patches.n, 0);
	ck_assert(patches_insert(&patches, AT, &code[1]));
	ck_assert(!patches_insert(&patches, ALIAS, &code[1]));
	ck_assert(patches_cover(&patches, ALIAS, &code[1]));
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[0], INT3);
	ck_assert_uint_eq(code[1], 0x90);
}
END_TEST

START_TEST(what_the_guest_wrote_stays)
{
	ck_assert(patches_insert(&patches, AT, &code[0]));
	ck_assert(patches_intact(&patches, AT));
	code[0] = 0xe8;
	ck_assert(!patches_intact(&patches, AT));
	ck_assert(!patches_lift(&patches, AT, &code[0]));
	patches_lay(&patches, AT, &code[0]);
	ck_assert_uint_eq(code[0], 0xe8);
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[0], 0xe8);
}
END_TEST

START_TEST(a_step_sees_the_instruction)
{
	ck_assert(patches_insert(&patches, AT, &code[0]));
	ck_assert(patches_lift(&patches, ALIAS, &code[0])); /* by whatever address it was executed */
	ck_assert_uint_eq(code[0], 0x55);
	ck_assert(patches_intact(&patches, AT));
	patches_lay(&patches, ALIAS, &code[0]);
	ck_assert_uint_eq(code[0], INT3);

	ck_assert(patches_lift(&patches, AT, &code[0]));
	patches_drop(&patches, AT);
	patches_lay(&patches, AT, &code[0]);
	ck_assert_uint_eq(code[0], 0x55);
}
END_TEST

START_TEST(removing_one_keeps_the_others)
{
	ck_assert(patches_insert(&patches, AT, &code[0]));
	ck_assert(patches_insert(&patches, (gva_t){AT.value + 1}, &code[1]));
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[1], INT3);
	ck_assert(patches_cover(&patches, (gva_t){AT.value + 1}, NULL));
	patches_drop(&patches, (gva_t){AT.value + 1});
	ck_assert_uint_eq(code[1], 0x90);
}
END_TEST

START_TEST(one_of_four_bytes_is_put_back_in_parts)
{
	static const struct patch_trap brk = {.code = 0xd42ece00u, .bytes = 4};
	_Alignas(4) uint8_t instruction[4] = {0xfd, 0x7b, 0xbf, 0xa9}, copy[6], end[2];
	static struct patches four;

	patches_init(&four, &brk);
	ck_assert(patches_insert(&four, AT, instruction));
	ck_assert(patches_trap(&four, instruction));
	ck_assert_uint_eq(instruction[3], 0xd4);
	memcpy(copy + 1, instruction, sizeof(instruction));
	patches_put_back(&four, (gva_t){AT.value - 1}, copy, sizeof(copy));
	ck_assert_uint_eq(copy[1], 0xfd);
	ck_assert_uint_eq(copy[4], 0xa9);
	memcpy(end, instruction + 2, sizeof(end));
	patches_put_back(&four, (gva_t){AT.value + 2}, end, sizeof(end));
	ck_assert_uint_eq(end[0], 0xbf);
	ck_assert_uint_eq(end[1], 0xa9);
	end[1] = 0x11; /* not the trap's any more */
	patches_put_back(&four, (gva_t){AT.value + 2}, end, sizeof(end));
	ck_assert_uint_eq(end[1], 0x11);
	patches_drop(&four, AT);
	ck_assert_uint_eq(instruction[3], 0xa9);
	patches_deinit(&four);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("patch");
	TCase *tests = tcase_create("patch");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, the_last_user_puts_it_back);
	tcase_add_test(tests, an_int3_is_not_patched);
	tcase_add_test(tests, what_the_guest_wrote_stays);
	tcase_add_test(tests, a_step_sees_the_instruction);
	tcase_add_test(tests, removing_one_keeps_the_others);
	tcase_add_test(tests, one_of_four_bytes_is_put_back_in_parts);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
