// SPDX-License-Identifier: BSD-2-Clause
/* Messages that a guest can cause: so many in a while, and none that is not counted. */
#include <check.h>

#include "lib/process/message_rate.h"
#include "run_suite.h"

START_TEST(a_few_are_printed)
{
	struct message_rate rate = {0};
	uint64_t left_out;

	for (unsigned i = 0; i < MESSAGE_RATE_MESSAGES; i++) {
		ck_assert(message_rate_take(&rate, 5 + i, &left_out));
		ck_assert_uint_eq(left_out, 0);
	}
	ck_assert_uint_eq(message_rate_end(&rate), 0);
}
END_TEST

START_TEST(more_are_counted_and_told_once)
{
	struct message_rate rate = {0};
	uint64_t left_out, printed = 0;

	for (unsigned i = 0; i < 1000; i++)
		printed += message_rate_take(&rate, i, &left_out);
	ck_assert_uint_eq(printed, MESSAGE_RATE_MESSAGES);
	ck_assert(!message_rate_take(&rate, MESSAGE_RATE_US - 1, &left_out));
	ck_assert(message_rate_take(&rate, MESSAGE_RATE_US, &left_out));
	ck_assert_uint_eq(left_out, 1001 - printed);
	ck_assert(message_rate_take(&rate, MESSAGE_RATE_US + 1, &left_out));
	ck_assert_uint_eq(left_out, 0);
	ck_assert_uint_eq(message_rate_end(&rate), 0);
}
END_TEST

START_TEST(what_nothing_follows_is_told_at_the_end)
{
	struct message_rate rate = {0};
	uint64_t left_out;

	for (unsigned i = 0; i < MESSAGE_RATE_MESSAGES + 7; i++)
		message_rate_take(&rate, 0, &left_out);
	ck_assert_uint_eq(message_rate_end(&rate), 7);
	ck_assert_uint_eq(message_rate_end(&rate), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("message_rate");
	TCase *cases = tcase_create("rate");

	tcase_add_test(cases, a_few_are_printed);
	tcase_add_test(cases, more_are_counted_and_told_once);
	tcase_add_test(cases, what_nothing_follows_is_told_at_the_end);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
