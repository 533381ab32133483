// SPDX-License-Identifier: BSD-2-Clause
/* The list of a kernel's tasks in memory laid out by hand: as it is, and as a guest that lies has it. */
#include <check.h>
#include <linux/perf_event.h>

#include "fake_tasks.h"
#include "guest/unwind.h"
#include "run_suite.h"

static struct fake_guest fake;
static struct page_walk walk;
static struct task_list list;

static void setup(void)
{
	fake_tasks_init(&fake, &walk);
}

static void teardown(void)
{
	task_list_clear(&list);
}

/* The tasks that are read have these pids, less 100; and the list ends so. */
static void check_list(enum task_list_end end, const unsigned *numbers, size_t n)
{
	task_list_clear(&list);
	task_list_read(&fake_list_layout, &fake_task_layout, &walk, &list);
	ck_assert_uint_eq(list.tasks->len, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(g_array_index(list.tasks, struct listed_task, i).task.tid, 100 + numbers[i]);
	ck_assert_int_eq(list.end, end);
}
#define check_tasks(end, ...) \
	check_list(end, (unsigned[]){__VA_ARGS__}, sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

static struct listed_task read_task(unsigned i)
{
	struct listed_task task;

	ck_assert(listed_task_read(&fake_list_layout, &fake_task_layout, &walk, FAKE_MEMORY + FAKE_TASK(i), &task));
	return task;
}

START_TEST(processes_and_their_threads)
{
	check_tasks(TASK_LIST_WHOLE, 1, 2, 3, 4, 5);
	const struct listed_task *third = &g_array_index(list.tasks, struct listed_task, 2);

	ck_assert_uint_eq(third->task.pid, 101);
	ck_assert_str_eq(third->task.comm, "task3");
	ck_assert_uint_eq(third->cpu_ns, 3000000);
	ck_assert_uint_eq(third->switches, 10);
	ck_assert_uint_eq(third->stack_pointer, FAKE_MEMORY + FAKE_STACK(3));
	ck_assert(!third->on_cpu);
	ck_assert(!third->kernel_thread);
	fake_number(&fake, FAKE_TASK(3) + fake_list_layout.flags, 0x200040);
	ck_assert(read_task(3).kernel_thread);
}
END_TEST

/* One read for each task, one for each of the two lists' heads, and those of the page tables. */
START_TEST(a_task_is_one_read)
{
	fake.reads = 0;
	check_tasks(TASK_LIST_WHOLE, 1, 2, 3, 4, 5);
	ck_assert_uint_le(fake.reads, 5 + 2 + 3);
}
END_TEST

START_TEST(letters_are_those_of_ps)
{
	static const struct {
		uint32_t state, exit_state;
		char letter;
	} states[] = {{0, 0, 'R'},      {1, 0, 'S'},      {2, 0, 'D'},       {4, 0, 'T'},    {8, 0, 't'},
	              {0, 0x20, 'Z'},   {0, 0x10, 'X'},   {0x80, 0x20, 'Z'}, {0x40, 0, 'P'}, {0x402, 0, 'I'},
	              {0x1000, 0, 'D'}, {0x8000, 0, 'D'}, {0x102, 0, 'D'},   {0x101, 0, 'S'}};

	for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
		fake_number(&fake, FAKE_TASK(1) + fake_list_layout.state.at, states[i].state);
		fake_number(&fake, FAKE_TASK(1) + fake_task_layout.exit_state, states[i].exit_state);
		ck_assert_int_eq(read_task(1).state, states[i].letter);
	}
	fake_number(&fake, FAKE_TASK(1) + fake_list_layout.on_cpu.at, 1);
	ck_assert_int_eq(read_task(1).state, 'R');
	ck_assert(read_task(1).on_cpu);
}
END_TEST

/* on_cpu has one byte from Linux 7.2 on, and on_rq is the next. */
START_TEST(numbers_end_where_their_types_do)
{
	struct task_list_layout layout = fake_list_layout;
	struct listed_task task;

	layout.on_cpu.bytes = 1;
	fake_number(&fake, FAKE_TASK(1) + layout.on_cpu.at, 0x01010100);
	ck_assert(listed_task_read(&layout, &fake_task_layout, &walk, FAKE_MEMORY + FAKE_TASK(1), &task));
	ck_assert(!task.on_cpu);
	ck_assert_int_eq(task.state, 'S');
	fake_number(&fake, FAKE_TASK(1) + layout.on_cpu.at, 0x00000001);
	ck_assert(listed_task_read(&layout, &fake_task_layout, &walk, FAKE_MEMORY + FAKE_TASK(1), &task));
	ck_assert(task.on_cpu);
}
END_TEST

/* A list that is a loop without its head. */
START_TEST(a_loop_ends)
{
	const uint64_t tasks = fake_list_layout.tasks, node = fake_list_layout.thread_node;

	fake_write(&fake, FAKE_TASK(5) + tasks, FAKE_MEMORY + FAKE_TASK(4) + tasks);
	check_tasks(TASK_LIST_BROKEN, 1, 2, 3, 4, 5);
	fake_write(&fake, FAKE_TASK(1) + tasks, FAKE_MEMORY + FAKE_TASK(1) + tasks);
	check_tasks(TASK_LIST_BROKEN, 1, 2, 3);
	setup();
	fake_write(&fake, FAKE_TASK(3) + node, FAKE_MEMORY + FAKE_TASK(2) + node);
	check_tasks(TASK_LIST_BROKEN, 1, 2, 3, 4, 5);
	fake_write(&fake, FAKE_TASK(1) + node, FAKE_MEMORY + FAKE_TASK(1) + node);
	check_tasks(TASK_LIST_BROKEN, 1, 4, 5);
}
END_TEST

START_TEST(links_that_lead_nowhere)
{
	const uint64_t tasks = fake_list_layout.tasks, node = fake_list_layout.thread_node;

	fake_write(&fake, FAKE_TASK(4) + tasks, 0x1000);
	check_tasks(TASK_LIST_BROKEN, 1, 2, 3, 4);
	fake_write(&fake, FAKE_TASK(4) + tasks, FAKE_MEMORY + FAKE_RAM_BYTES - 8);
	check_tasks(TASK_LIST_BROKEN, 1, 2, 3, 4);
	/* What is there is no task: its name does not end. */
	memset(fake.ram + FAKE_TASK(4) + fake_task_layout.comm, 'x', TASK_COMM_BYTES);
	check_tasks(TASK_LIST_BROKEN, 1, 2, 3);
	/* A thread of another process, which is still found as what it is. */
	setup();
	fake_write(&fake, FAKE_TASK(2) + node, FAKE_MEMORY + FAKE_TASK(5) + node);
	check_tasks(TASK_LIST_BROKEN, 1, 2, 4, 5);
	fake_write(&fake, FAKE_INIT_TASK + tasks, 0);
	check_list(TASK_LIST_BROKEN, NULL, 0);
}
END_TEST

/* One that ends has left its process. */
START_TEST(a_task_without_a_process)
{
	fake_write(&fake, FAKE_TASK(1) + fake_list_layout.signal, 0);
	check_tasks(TASK_LIST_WHOLE, 1, 4, 5);
}
END_TEST

static size_t sleeper_chain(unsigned i, uint64_t chain[UNWIND_CHAIN_MAX])
{
	const struct unwind_config config = {.depth = 10};
	const struct listed_task task = read_task(i);
	enum unwind_end end;
	struct frame frame;

	if (!listed_task_frame(&fake_list_layout, &walk, &task, &frame))
		return 0;
	return unwind_from(&config, &walk, &frame, chain, &end);
}

START_TEST(a_sleeper_has_its_chain_in_memory)
{
	uint64_t chain[UNWIND_CHAIN_MAX];

	ck_assert_uint_eq(sleeper_chain(2, chain), 3);
	ck_assert_uint_eq(chain[0], (uint64_t)PERF_CONTEXT_KERNEL);
	ck_assert_uint_eq(chain[1], FAKE_WAITS + 0x10);
	ck_assert_uint_eq(chain[2], FAKE_CODE + 0x20);
	ck_assert_uint_eq(task_wait_channel(&fake_list_layout, chain, 3), FAKE_CODE + 0x20);
	ck_assert_uint_eq(task_wait_channel(&fake_list_layout, chain, 2), 0);
	/* One that has never run begins there. */
	fake_write(&fake, FAKE_STACK(2) + 0x28, 0);
	fake_write(&fake, FAKE_STACK(2) + 0x30, FAKE_FORK);
	ck_assert_uint_eq(sleeper_chain(2, chain), 2);
	ck_assert_uint_eq(chain[1], FAKE_FORK);
}
END_TEST

START_TEST(stack_pointers_anywhere)
{
	static const uint64_t pointers[] = {0, 0x1000, UINT64_MAX, UINT64_MAX - 7, FAKE_MEMORY + FAKE_RAM_BYTES - 8};
	uint64_t chain[UNWIND_CHAIN_MAX];

	for (size_t i = 0; i < G_N_ELEMENTS(pointers); i++) {
		fake_write(&fake, FAKE_TASK(2) + fake_list_layout.stack_pointer, pointers[i]);
		ck_assert_uint_eq(sleeper_chain(2, chain), 0);
	}
	/* A kernel does not go on in user space. */
	setup();
	fake_write(&fake, FAKE_STACK(2) + 0x30, 0x401000);
	ck_assert_uint_eq(sleeper_chain(2, chain), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task_list");
	TCase *tests = tcase_create("task_list");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, processes_and_their_threads);
	tcase_add_test(tests, a_task_is_one_read);
	tcase_add_test(tests, letters_are_those_of_ps);
	tcase_add_test(tests, numbers_end_where_their_types_do);
	tcase_add_test(tests, a_loop_ends);
	tcase_add_test(tests, links_that_lead_nowhere);
	tcase_add_test(tests, a_task_without_a_process);
	tcase_add_test(tests, a_sleeper_has_its_chain_in_memory);
	tcase_add_test(tests, stack_pointers_anywhere);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
