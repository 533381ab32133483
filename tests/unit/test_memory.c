// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>

#include "kvm/host/memory.h"
#include "run_suite.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

static struct memory *memory_make(uint64_t bytes)
{
	GError *error = NULL;
	struct memory *memory = memory_new(bytes, &error);

	ck_assert_msg(memory != NULL, "%s", error ? error->message : "?");
	return memory;
}

static void *at(const struct memory *memory, uint64_t from, uint64_t bytes)
{
	return memory_at(memory, (gpa_t){from}, bytes);
}

START_TEST(sizes_out_of_range_are_refused)
{
	static const uint64_t sizes[] = {0, MIB(126), MIB(128) + 4096, MIB(129), GIB(64) + MIB(2), UINT64_MAX};

	for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
		g_autoptr(GError) error = NULL;

		ck_assert_ptr_null(memory_new(sizes[i], &error));
		ck_assert(g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_INVAL));
	}
}
END_TEST

START_TEST(memory_goes_below_the_hole_first)
{
	static const struct {
		uint64_t bytes, low, high;
	} cases[] = {
		{MIB(128), MIB(128), 0},  {GIB(3), GIB(3), 0},        {GIB(3) + MIB(2), GIB(3), MIB(2)},
		{GIB(4), GIB(3), GIB(1)}, {GIB(64), GIB(3), GIB(61)},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct memory *memory = memory_make(cases[i].bytes);

		ck_assert_uint_eq(memory_bytes(memory), cases[i].bytes);
		ck_assert_uint_eq(memory_low_bytes(memory), cases[i].low);
		ck_assert_uint_eq(memory_high_bytes(memory), cases[i].high);
		memory_free(memory);
	}
}
END_TEST

START_TEST(ranges_end_where_memory_ends)
{
	struct memory *memory = memory_make(MIB(128));
	uint8_t *base = at(memory, 0, 1);

	ck_assert_ptr_nonnull(base);
	ck_assert_uint_eq((uintptr_t)base % MIB(2), 0);
	ck_assert_ptr_eq(at(memory, 0, MIB(128)), base);
	ck_assert_ptr_eq(at(memory, MIB(128) - 1, 1), base + MIB(128) - 1);
	ck_assert_ptr_null(at(memory, 0, MIB(128) + 1));
	ck_assert_ptr_null(at(memory, MIB(128) - 1, 2));
	ck_assert_ptr_null(at(memory, MIB(128), 1));
	ck_assert_ptr_null(at(memory, MIB(128), 0));
	ck_assert_ptr_null(at(memory, GIB(4), 1));
	ck_assert_ptr_null(at(memory, GIB(4), 0));
	memory_free(memory);
}
END_TEST

START_TEST(ranges_do_not_span_the_hole)
{
	struct memory *memory = memory_make(GIB(4));
	uint8_t *base = at(memory, 0, 1);

	ck_assert_ptr_eq(at(memory, GIB(3) - 1, 1), base + GIB(3) - 1);
	ck_assert_ptr_null(at(memory, GIB(3) - 1, 2));
	ck_assert_ptr_null(at(memory, GIB(3), 1));
	ck_assert_ptr_null(at(memory, GIB(4) - 1, 1));
	ck_assert_ptr_null(at(memory, GIB(4) - 1, 2));
	ck_assert_ptr_null(at(memory, GIB(3) - 1, GIB(1) + 2));
	ck_assert_ptr_eq(at(memory, GIB(4), GIB(1)), base + GIB(3));
	ck_assert_ptr_eq(at(memory, GIB(5) - 1, 1), base + GIB(4) - 1);
	ck_assert_ptr_null(at(memory, GIB(4), GIB(1) + 1));
	ck_assert_ptr_null(at(memory, GIB(5), 1));
	memory_free(memory);
}
END_TEST

START_TEST(ranges_that_wrap_are_not_memory)
{
	struct memory *memory = memory_make(GIB(4));

	ck_assert_ptr_null(at(memory, UINT64_MAX, 1));
	ck_assert_ptr_null(at(memory, UINT64_MAX, 2));
	ck_assert_ptr_null(at(memory, 0, UINT64_MAX));
	ck_assert_ptr_null(at(memory, 4096, UINT64_MAX - 4095));
	ck_assert_ptr_null(at(memory, GIB(4), UINT64_MAX - GIB(4) + 1));
	memory_free(memory);
}
END_TEST

START_TEST(registration_names_what_failed)
{
	struct memory *memory = memory_make(MIB(128));
	g_autoptr(GError) error = NULL;

	ck_assert(!memory_register(memory, -1, &error));
	ck_assert_ptr_nonnull(strstr(error->message, "KVM_SET_USER_MEMORY_REGION"));
	memory_free(memory);
	memory_free(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory");
	TCase *tcase = tcase_create("core");

	tcase_add_test(tcase, sizes_out_of_range_are_refused);
	tcase_add_test(tcase, memory_goes_below_the_hole_first);
	tcase_add_test(tcase, ranges_end_where_memory_ends);
	tcase_add_test(tcase, ranges_do_not_span_the_hole);
	tcase_add_test(tcase, ranges_that_wrap_are_not_memory);
	tcase_add_test(tcase, registration_names_what_failed);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
