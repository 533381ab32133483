// SPDX-License-Identifier: BSD-2-Clause
/* Which return belongs to which call. What is placed where is in test_probe.c. */
#include <check.h>
#include <glib.h>

#include "probe/probe_priv.h"
#include "run_suite.h"

#define STACK UINT64_C(0x7ffe5bdfaaa0)
#define PARENT UINT64_C(0xffff888004a0f840)
#define CHILD UINT64_C(0xffff888004a0f880)
#define WAIT_NS UINT64_C(2000000)

static struct probe_returns *returns;

static void setup(void)
{
	returns = probe_returns_new(NULL, &(struct function_returns){.n = 0});
}

static void teardown(void)
{
	g_free(returns);
}

static void wait(void)
{
	g_usleep(WAIT_NS / 1000);
}

/* Two that have the same stack pointer, as a child has that of its parent. */
START_TEST(calls_of_processes_are_told_apart)
{
	uint64_t ns = 0, longer_ns = 0;

	probe_returns_enter(returns, PARENT, STACK);
	wait();
	probe_returns_enter(returns, CHILD, STACK);
	ck_assert(!probe_returns_leave(returns, 0, STACK, &ns));
	ck_assert(probe_returns_leave(returns, CHILD, STACK, &ns));
	ck_assert(!probe_returns_leave(returns, CHILD, STACK, &ns));
	ck_assert(probe_returns_leave(returns, PARENT, STACK, &longer_ns));
	ck_assert_uint_ge(longer_ns, WAIT_NS + ns);
	ck_assert_uint_eq(probe_returns_forgotten(returns), 0);
}
END_TEST

/* The next call at that place of the stack is another one. */
START_TEST(a_call_that_never_returned_is_forgotten)
{
	uint64_t ns = 0;

	probe_returns_enter(returns, PARENT, STACK);
	probe_returns_enter(returns, PARENT, STACK - 64); /* leaves both by longjmp(3) */
	wait();
	probe_returns_enter(returns, PARENT, STACK);
	ck_assert(probe_returns_leave(returns, PARENT, STACK, &ns));
	ck_assert_uint_lt(ns, WAIT_NS);
	ck_assert(!probe_returns_leave(returns, PARENT, STACK, &ns));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probe_return");
	TCase *tc = tcase_create("calls");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, calls_of_processes_are_told_apart);
	tcase_add_test(tc, a_call_that_never_returned_is_forgotten);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
