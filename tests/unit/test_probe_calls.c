// SPDX-License-Identifier: BSD-2-Clause
/* Which return belongs to which call. What is placed where is in test_probe.c. */
#include <check.h>
#include <glib.h>

#include "probe/placement_priv.h"
#include "run_suite.h"

#define STACK UINT64_C(0x7ffe5bdfaaa0)
#define PARENT UINT64_C(0xffff888004a0f840)
#define CHILD UINT64_C(0xffff888004a0f880)
#define WAIT_NS UINT64_C(2000000)

static struct probe_calls *calls;

static void setup(void)
{
	calls = probe_calls_new();
}

static void teardown(void)
{
	probe_calls_free(calls);
}

static void wait(void)
{
	g_usleep(WAIT_NS / 1000);
}

/* Two that have the same stack pointer, as a child has that of its parent. */
START_TEST(calls_of_processes_are_told_apart)
{
	uint64_t ns = 0, longer_ns = 0;

	probe_calls_enter(calls, PARENT, STACK);
	wait();
	probe_calls_enter(calls, CHILD, STACK);
	ck_assert(!probe_calls_leave(calls, 0, STACK, &ns));
	ck_assert(probe_calls_leave(calls, CHILD, STACK, &ns));
	ck_assert(!probe_calls_leave(calls, CHILD, STACK, &ns));
	ck_assert(probe_calls_leave(calls, PARENT, STACK, &longer_ns));
	ck_assert_uint_ge(longer_ns, WAIT_NS + ns);
	ck_assert_uint_eq(probe_calls_forgotten(calls), 0);
}
END_TEST

/* The next call at that place of the stack is another one. */
START_TEST(a_call_that_never_returned_is_forgotten)
{
	uint64_t ns = 0;

	probe_calls_enter(calls, PARENT, STACK);
	probe_calls_enter(calls, PARENT, STACK - 64); /* leaves both by longjmp(3) */
	wait();
	probe_calls_enter(calls, PARENT, STACK);
	ck_assert(probe_calls_leave(calls, PARENT, STACK, &ns));
	ck_assert_uint_lt(ns, WAIT_NS);
	ck_assert(!probe_calls_leave(calls, PARENT, STACK, &ns));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probe_calls");
	TCase *tc = tcase_create("calls");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, calls_of_processes_are_told_apart);
	tcase_add_test(tc, a_call_that_never_returned_is_forgotten);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
