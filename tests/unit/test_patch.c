// SPDX-License-Identifier: BSD-2-Clause
/* Breakpoints in the guest's code: one byte is changed and put back, unless it is the guest's own by then. */
#include "kvm/vcpu/x86/patch.h"
#include "run_suite.h"

#define AT ((gva_t){0xffffffff81000000})
#define ALIAS ((gva_t){0xffff888001000000})

static struct patches patches;
static uint8_t code[2];

static void setup(void)
{
	patches_init(&patches);
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
	ck_assert_uint_eq(code[0], PATCH_INT3);
	ck_assert_uint_eq(code[1], 0x90);
	ck_assert(patches_insert(&patches, AT, &code[0]));
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[0], PATCH_INT3);
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[0], 0x55);
	ck_assert(!patches_cover(&patches, AT, &code[0]));
}
END_TEST

START_TEST(an_int3_is_not_patched)
{
	code[0] = PATCH_INT3;
	ck_assert(!patches_insert(&patches, AT, &code[0]));
	ck_assert_uint_eq(patches.n, 0);
	ck_assert(patches_insert(&patches, AT, &code[1]));
	ck_assert(!patches_insert(&patches, ALIAS, &code[1]));
	ck_assert(patches_cover(&patches, ALIAS, &code[1]));
	patches_drop(&patches, AT);
	ck_assert_uint_eq(code[0], PATCH_INT3);
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
	ck_assert_uint_eq(code[0], PATCH_INT3);

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
	ck_assert_uint_eq(code[1], PATCH_INT3);
	ck_assert(patches_cover(&patches, (gva_t){AT.value + 1}, NULL));
	patches_drop(&patches, (gva_t){AT.value + 1});
	ck_assert_uint_eq(code[1], 0x90);
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
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
