// SPDX-License-Identifier: BSD-2-Clause
/* The locks that tasks wait for, in memory laid out by hand. */
#include <check.h>

#include "fake_locks.h"
#include "run_suite.h"

#define OWNER (FAKE_MEMORY + FAKE_TASK(5))

static struct fake_guest fake;
static struct page_walk walk;
static struct lock_layout layout;

static void setup(void)
{
	fake_tasks_init(&fake, &walk);
	layout = fake_lock_layout;
}

static bool find(unsigned i, struct os_lock *wait)
{
	return lock_wait_find(&layout, &walk, FAKE_MEMORY + FAKE_TASK(i), FAKE_MEMORY + FAKE_STACK(i), wait);
}

static void check_none(unsigned i)
{
	struct os_lock wait = {.lock = 77};

	ck_assert(!find(i, &wait));
	ck_assert_uint_eq(wait.lock, 77);
}

static void check_wait(unsigned i, enum vprof_lock kind, uint64_t lock, uint64_t owner)
{
	struct os_lock wait;

	ck_assert(find(i, &wait));
	ck_assert_uint_eq(wait.kind, kind);
	ck_assert_uint_eq(wait.lock, lock);
	ck_assert_uint_eq(wait.owner, owner);
}

START_TEST(each_that_waits_finds_the_lock)
{
	const enum vprof_lock kind = (enum vprof_lock)_i;

	fake_lock(&fake, kind, 1, OWNER);
	check_wait(1, kind, FAKE_MEMORY + FAKE_LOCK, OWNER);
	check_none(2);
	fake_lock(&fake, kind, 4, OWNER | (kind == VPROF_LOCK_MUTEX ? 7 : 2));
	for (unsigned i = 1; i <= 4; i++)
		check_wait(i, kind, FAKE_MEMORY + FAKE_LOCK, OWNER);
	check_none(5);
}
END_TEST

START_TEST(each_that_waits_in_a_ring_finds_the_lock)
{
	const enum vprof_lock kind = (enum vprof_lock)_i;

	layout.types[kind].first = true;
	for (unsigned n = 1; n <= 4; n++) {
		fake_lock_first(&fake, &layout, kind, n, OWNER);
		for (unsigned i = 1; i <= n; i++)
			check_wait(i, kind, FAKE_MEMORY + FAKE_LOCK, OWNER);
	}
	check_none(5);
	/* Another waits first, who is not in the ring. */
	fake_write(&fake, FAKE_LOCK + layout.types[kind].list, FAKE_MEMORY + FAKE_WAITER(5));
	check_none(1);
	fake_lock_first(&fake, &layout, kind, 2, OWNER);
	fake_write(&fake, FAKE_STACK(1) + 0x10, 0);
	check_none(1);
	check_wait(2, kind, FAKE_MEMORY + FAKE_LOCK, OWNER);
	/* A ring that leads nowhere, and one with something that does not wait. */
	fake_write(&fake, FAKE_WAITER(2) + layout.types[kind].waiter_list, FAKE_MEMORY + FAKE_RAM_BYTES);
	check_none(2);
	fake_lock_first(&fake, &layout, kind, 3, OWNER);
	fake_write(&fake, FAKE_WAITER(3) + layout.types[kind].waiter_task, 0);
	check_none(1);
}
END_TEST

START_TEST(who_has_it_is_not_always_said)
{
	fake_lock(&fake, VPROF_LOCK_RWSEM, 2, OWNER | 1); /* readers */
	check_wait(2, VPROF_LOCK_RWSEM, FAKE_MEMORY + FAKE_LOCK, 0);
	fake_lock(&fake, VPROF_LOCK_MUTEX, 2, 1); /* given away */
	check_wait(2, VPROF_LOCK_MUTEX, FAKE_MEMORY + FAKE_LOCK, 0);
}
END_TEST

START_TEST(what_is_not_linked_is_no_wait)
{
	const struct lock_type *type = &fake_lock_layout.types[VPROF_LOCK_MUTEX];

	fake_lock(&fake, VPROF_LOCK_MUTEX, 3, OWNER);
	/* A loop without a lock in it. */
	fake_ring(&fake, (uint64_t[]){FAKE_WAITER(1) + type->waiter_list, FAKE_WAITER(2) + type->waiter_list}, 2);
	check_none(1);
	fake_lock(&fake, VPROF_LOCK_MUTEX, 3, OWNER);
	fake_write(&fake, FAKE_LOCK + type->list + 8, FAKE_MEMORY + FAKE_LOCK);
	check_none(1);
	fake_lock(&fake, VPROF_LOCK_MUTEX, 3, OWNER);
	fake_write(&fake, FAKE_WAITER(1) + type->waiter_list, FAKE_MEMORY + FAKE_RAM_BYTES);
	check_none(1);
	/* It is in the list, but not in the code. */
	fake_lock(&fake, VPROF_LOCK_MUTEX, 3, OWNER);
	fake_write(&fake, FAKE_WAITER(1) - 8, FAKE_WAITS);
	check_none(1);
	check_wait(2, VPROF_LOCK_MUTEX, FAKE_MEMORY + FAKE_LOCK, OWNER);
}
END_TEST

START_TEST(futexes_are_arguments)
{
	static const struct {
		uint64_t number, command;
		bool found;
	} calls[] = {{202, 0x80, true},  {202, 0x189, true}, {202, 6, true}, {202, 0x81, false},
	             {202, 0xbf, false}, {1, 0, false},      {202, 13, true}};

	for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
		fake_futex(&fake, 1, calls[i].number, calls[i].command, 0x55d0c8);
		if (calls[i].found)
			check_wait(1, VPROF_LOCK_FUTEX, 0x55d0c8, 0);
		else
			check_none(1);
	}
	/* In kernels that can use FRED, the registers end before the stack does, and CS has flags. */
	fake_futex(&fake, 1, 202, 0, 0x55d0c8);
	layout.stack_padding = 16;
	check_none(1);
	const uint64_t regs = (FAKE_STACK(1) | (FAKE_STACK_BYTES - 1)) + 1 - 168;

	memmove(fake.ram + regs - 16, fake.ram + regs, 168);
	fake_write(&fake, regs - 16 + 136, 0x30033);
	check_wait(1, VPROF_LOCK_FUTEX, 0x55d0c8, 0);
}
END_TEST

START_TEST(stacks_that_cannot_be_read)
{
	struct os_lock wait;

	fake_lock(&fake, VPROF_LOCK_MUTEX, 1, OWNER);
	ck_assert(!lock_wait_find(&fake_lock_layout, &walk, OWNER, FAKE_MEMORY + FAKE_RAM_BYTES, &wait));
	ck_assert(!lock_wait_find(&fake_lock_layout, &walk, OWNER, FAKE_MEMORY + FAKE_STACK(1) + 1, &wait));
	ck_assert(!lock_wait_find(&fake_lock_layout, &walk, OWNER, 0, &wait));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lock");
	TCase *tests = tcase_create("lock");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_loop_test(tests, each_that_waits_finds_the_lock, VPROF_LOCK_MUTEX, VPROF_LOCK_FUTEX);
	tcase_add_loop_test(tests, each_that_waits_in_a_ring_finds_the_lock, VPROF_LOCK_MUTEX, VPROF_LOCK_FUTEX);
	tcase_add_test(tests, who_has_it_is_not_always_said);
	tcase_add_test(tests, what_is_not_linked_is_no_wait);
	tcase_add_test(tests, futexes_are_arguments);
	tcase_add_test(tests, stacks_that_cannot_be_read);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
