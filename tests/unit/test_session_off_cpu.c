// SPDX-License-Identifier: BSD-2-Clause
/* Samples of waits, by the context switches of a guest in memory laid out by hand. */
#include <vprof/recording.h>

#include "fake_locks.h"
#include "lib/record/clock.h"
#include "run_suite.h"
#include "sample/session_off_cpu.h"
#include "wait_session.h"

#define MANY_MEMORY (FAKE_MEMORY + (UINT64_C(1) << 39))
#define MANY UINT64_C(40000)
#define PAGE_2M (UINT64_C(2) << 20)
#define SLEEPING 1u
#define UNINTERRUPTIBLE 2u
#define DEAD 0x80u
#define FAKE_PREEMPT_COUNT 24u /* in an area */

static struct guest_regs regs;

static void setup(void)
{
	wait_session_open(&(struct session_config){.off_cpu = true});
	regs = (struct guest_regs){.cr3 = walk.tables.cr3, .gs_base = FAKE_MEMORY + FAKE_AREA, .valid = true};
	ck_assert(session_off_cpu_start(&session, NULL));
}

static void teardown(void)
{
	session_off_cpu_stop(&session);
	wait_session_close();
}

/* Task i; 0: the idle one. */
static struct task task_of(unsigned i)
{
	const struct task idle = {.address = FAKE_MEMORY + FAKE_IDLE_TASK};
	struct listed_task task;

	if (i == 0)
		return idle;
	ck_assert(listed_task_read(&kernel.list, &kernel.tasks, &walk, FAKE_MEMORY + FAKE_TASK(i), &task));
	return task.task;
}

/* The processor goes from task `from`, which runs until now and is in `state`, to task `to`. */
static void call_switch_to(unsigned from, uint32_t state, unsigned to, uint64_t at_ns)
{
	const struct task_view view = {.kernel = &kernel.os, .walk = &walk, .regs = &regs};
	const struct task previous = task_of(from), next = task_of(to);

	if (from != 0) {
		fake_number(&fake, FAKE_TASK(from) + fake_list_layout.state.at, state);
		fake_number(&fake, FAKE_TASK(from) + fake_list_layout.on_cpu.at, 1);
	}
	session_off_cpu_switched(&session, 0, &view, &previous, &next, at_ns);
	if (from != 0)
		fake_number(&fake, FAKE_TASK(from) + fake_list_layout.on_cpu.at, 0);
}

/* The next sample is of task i; 0: there is none. */
static void check_sample(unsigned i, enum vprof_task_state state, uint64_t end_ns, uint64_t period_ns)
{
	const struct perf_event_header *record;
	struct perf_event_attr attr;
	struct record_sample sample;
	size_t bytes;

	session_config_attr(&session.config, false, 1, &attr);
	ck_assert_uint_eq(attr.sample_period, 1);
	do
		record = ring_reader_next(reader, &bytes);
	while (record && record->type != PERF_RECORD_SAMPLE);
	ck_assert_int_eq(record != NULL, i != 0);
	if (!record)
		return;
	ck_assert(record_sample_decode(record, bytes, attr.sample_type, &sample));
	ck_assert_uint_eq(sample.id, session_event_id(1, 0));
	ck_assert_uint_eq(sample.tid, 100 + i);
	ck_assert_uint_eq((sample.misc & VPROF_TASK_STATE_MASK) >> VPROF_TASK_STATE_SHIFT, state);
	ck_assert_uint_eq(sample.time_ns, end_ns);
	ck_assert_uint_eq(sample.period, period_ns);
	/* Not the scheduler, but what has called it. */
	ck_assert_uint_eq(sample.ip, FAKE_CODE + UINT64_C(16) * i);
	ck_assert_uint_eq(sample.n_chain, 2);
	ck_assert_uint_eq(sample.chain[1], sample.ip);
}

/* What the next sample says of its wait. */
static struct vprof_wait next_wait(enum vprof_task_state state)
{
	const struct perf_event_header *record;
	struct perf_event_attr attr;
	struct record_sample sample;
	size_t bytes;

	session_config_attr(&session.config, false, 1, &attr);
	do
		record = ring_reader_next(reader, &bytes);
	while (record && record->type != PERF_RECORD_SAMPLE);
	ck_assert_ptr_nonnull(record);
	ck_assert(record_sample_decode(record, bytes, attr.sample_type, &sample));
	ck_assert_uint_eq((sample.misc & VPROF_TASK_STATE_MASK) >> VPROF_TASK_STATE_SHIFT, state);
	return record_sample_wait(&sample);
}

START_TEST(a_wait_lasts_from_switch_to_switch)
{
	ck_assert_str_eq(session.config.events[1].name, VPROF_OFF_CPU_EVENT);
	call_switch_to(1, SLEEPING, 4, 1000); /* task 4 has begun to wait before */
	check_sample(0, 0, 0, 0);
	call_switch_to(4, UNINTERRUPTIBLE, 0, 1500);
	call_switch_to(0, 0, 1, 4000);
	check_sample(1, VPROF_TASK_SLEEPING, 4000, 3000);
	call_switch_to(1, 0, 4, 4100);
	check_sample(4, VPROF_TASK_DISK_SLEEP, 4100, 2600);
	call_switch_to(4, SLEEPING, 1, 4350);
	check_sample(1, VPROF_TASK_RUNNABLE, 4350, 250);
	check_sample(0, 0, 0, 0);
}
END_TEST

START_TEST(waiting_for_a_processor_is_a_sample_of_its_own)
{
	const uint64_t queued = FAKE_TASK(1) + fake_list_layout.queued;

	fake_write(&fake, queued, 70);
	call_switch_to(1, SLEEPING, 4, 1000);
	fake_write(&fake, queued, 70 + 200);
	call_switch_to(4, 0, 1, 2000);
	check_sample(1, VPROF_TASK_SLEEPING, 1800, 800);
	check_sample(1, VPROF_TASK_RUNNABLE, 2000, 200);
	/* By a clock that is ahead, or a kernel that lies, it is all of it. */
	call_switch_to(1, SLEEPING, 4, 3000);
	check_sample(4, VPROF_TASK_RUNNABLE, 3000, 1000);
	fake_write(&fake, queued, 70);
	call_switch_to(4, SLEEPING, 1, 3500);
	check_sample(1, VPROF_TASK_RUNNABLE, 3500, 500);
	check_sample(0, 0, 0, 0);
}
END_TEST

static struct guest_breakpoint *wake_up;

static bool breakpoint_add(struct guest *guest, struct guest_breakpoint *breakpoint, GError **error)
{
	(void)guest;
	(void)error;
	ck_assert_uint_eq(breakpoint->at.value, FAKE_CODE);
	wake_up = breakpoint;
	return true;
}

static void breakpoint_remove(struct guest *guest, struct guest_breakpoint *breakpoint)
{
	(void)guest;
	ck_assert_ptr_eq(breakpoint, wake_up);
	wake_up = NULL;
}

/* With a kernel that wakes up at FAKE_CODE, and the lock that task 1 waits for. */
static void wakes_start_again(void)
{
	static const struct guest_debug_ops debug = {.breakpoint_add = breakpoint_add,
	                                             .breakpoint_remove = breakpoint_remove};

	session_off_cpu_stop(&session);
	fake.guest.debug = &debug;
	kernel.wake_up = (gva_t){FAKE_CODE};
	kernel.preempt_count = (gva_t){FAKE_PREEMPT_COUNT};
	kernel.has_locks = true;
	kernel_layout_settle(&kernel);
	kernel.locks = fake_lock_layout;
	ck_assert(session_off_cpu_start(&session, NULL));
	ck_assert_ptr_nonnull(wake_up);
	fake_lock(&fake, VPROF_LOCK_MUTEX, 1, FAKE_MEMORY + FAKE_TASK(5));
}

/* Task 4, which the processor runs, or an interrupt, wakes task i up if it is in one of these states. */
static void call_wake_up(unsigned i, uint32_t states, uint32_t preempt_count)
{
	const struct guest_gprs gprs = {.rdi = FAKE_MEMORY + FAKE_TASK(i), .rsi = states};

	fake_number(&fake, FAKE_AREA + FAKE_PREEMPT_COUNT, preempt_count);
	wake_up->hit(wake_up, 0, &regs, &gprs);
}

START_TEST(a_wait_has_a_waker_and_a_lock)
{
	struct vprof_wait wait;
	struct session_statistics statistics;

	wakes_start_again();
	call_wake_up(1, SLEEPING, 0); /* it does not wait */
	call_switch_to(1, SLEEPING, 0, clock_ns(CLOCK_MONOTONIC));
	call_wake_up(1, UNINTERRUPTIBLE, 0);
	call_wake_up(1, SLEEPING | UNINTERRUPTIBLE, 1);
	call_wake_up(1, SLEEPING, 0x10000); /* again */
	call_switch_to(0, 0, 1, clock_ns(CLOCK_MONOTONIC));
	wait = next_wait(VPROF_TASK_SLEEPING);
	ck_assert_uint_eq(wait.waker, VPROF_WAKER_TASK);
	ck_assert_uint_eq(wait.waker_tid, 104);
	ck_assert_uint_eq(wait.waker_pid, 104);
	ck_assert_uint_eq(wait.lock_kind, VPROF_LOCK_MUTEX);
	ck_assert_uint_eq(wait.lock, FAKE_MEMORY + FAKE_LOCK);
	ck_assert_uint_eq(wait.owner_tid, 105);
	/* It was ready from the wake-up on. */
	ck_assert_uint_eq(next_wait(VPROF_TASK_RUNNABLE).waker_tid, 104);
	call_switch_to(1, SLEEPING, 0, clock_ns(CLOCK_MONOTONIC));
	call_wake_up(1, SLEEPING, 0x10000);
	call_switch_to(0, 0, 1, clock_ns(CLOCK_MONOTONIC));
	ck_assert_uint_eq(next_wait(VPROF_TASK_SLEEPING).waker, VPROF_WAKER_INTERRUPT);
	sampler_statistics_read(&sampler, NULL, &statistics);
	ck_assert_uint_eq(statistics.off_cpu_no_waker, 0);
	call_switch_to(1, SLEEPING, 0, clock_ns(CLOCK_MONOTONIC));
	call_switch_to(0, 0, 1, clock_ns(CLOCK_MONOTONIC));
	ck_assert_uint_eq(next_wait(VPROF_TASK_RUNNABLE).waker, VPROF_WAKER_INTERRUPT);
	ck_assert_uint_eq(next_wait(VPROF_TASK_SLEEPING).waker, VPROF_WAKER_UNKNOWN);
	sampler_statistics_read(&sampler, NULL, &statistics);
	ck_assert_uint_eq(statistics.off_cpu_no_waker, 1);
	session_off_cpu_stop(&session);
	ck_assert_ptr_null(wake_up);
}
END_TEST

/* On arm64, the task that was interrupted says so. */
START_TEST(interrupts_are_told_by_the_task)
{
	wakes_start_again();
	kernel.preempt_count = (gva_t){0};
	kernel.task_preempt_count = 0x98;
	for (uint32_t count = 0; count <= 0x10000; count += 0x10000) {
		fake_number(&fake, FAKE_TASK(4) + kernel.task_preempt_count, count);
		call_switch_to(1, SLEEPING, 0, clock_ns(CLOCK_MONOTONIC));
		call_wake_up(1, SLEEPING, 0x10000);
		call_switch_to(0, 0, 1, clock_ns(CLOCK_MONOTONIC));
		ck_assert_uint_eq(next_wait(VPROF_TASK_SLEEPING).waker,
		                  count ? VPROF_WAKER_INTERRUPT : VPROF_WAKER_TASK);
		next_wait(VPROF_TASK_RUNNABLE);
	}
	session_off_cpu_stop(&session);
}
END_TEST

START_TEST(what_is_no_wait_is_left_out)
{
	/* One that has ended, and another with its task_struct. */
	call_switch_to(2, DEAD, 0, 1000);
	fake_write(&fake, FAKE_TASK(2) + fake_task_layout.start_time, 77);
	call_switch_to(0, 0, 2, 2000);
	/* One that ended while it waited. */
	call_switch_to(3, SLEEPING, 0, 2000);
	fake_write(&fake, FAKE_TASK(3) + fake_task_layout.start_time, 77);
	call_switch_to(0, 0, 3, 3000);
	/* A kernel thread without work. */
	fake_number(&fake, FAKE_TASK(5) + fake_list_layout.flags, 0x200000);
	call_switch_to(5, SLEEPING, 0, 3000);
	call_switch_to(0, 0, 5, 4000);
	check_sample(0, 0, 0, 0);
	/* Another, which waits for a disk. */
	call_switch_to(5, UNINTERRUPTIBLE, 0, 5000);
	call_switch_to(0, 0, 5, 5001);
	check_sample(5, VPROF_TASK_DISK_SLEEP, 5001, 1);
}
END_TEST

START_TEST(what_cannot_be_read_is_counted)
{
	const struct task_view view = {.kernel = &kernel.os, .walk = &walk, .regs = &regs};
	const struct task idle = task_of(0), task = task_of(1);
	struct session_statistics statistics;

	call_switch_to(1, SLEEPING, 0, 1000);
	fake_write(&fake, FAKE_TASK(1) + fake_list_layout.stack_pointer, FAKE_MEMORY + FAKE_RAM_BYTES);
	call_switch_to(0, 0, 1, 2000);
	session_off_cpu_switched(&session, 0, &view, NULL, &idle, 3000);
	session_off_cpu_switched(&session, 0, &view, &idle, &task, 4000); /* has begun to wait before */
	check_sample(0, 0, 0, 0);
	sampler_statistics_read(&sampler, NULL, &statistics);
	ck_assert_uint_eq(statistics.off_cpu_unread, 2);
}
END_TEST

START_TEST(kernel_threads_without_work_on_request)
{
	session.config.idle_threads = true;
	fake_number(&fake, FAKE_TASK(5) + fake_list_layout.flags, 0x200000);
	call_switch_to(5, SLEEPING, 0, 3000);
	call_switch_to(0, 0, 5, 4000);
	check_sample(5, VPROF_TASK_SLEEPING, 4000, 1000);
}
END_TEST

/* Maps the RAM at each of MANY addresses, 2 MiB apart. */
static void ram_map_often(void)
{
	uint64_t directories, pages;

	for (unsigned i = 0; i < 512; i++)
		fake_map(&fake, walk.tables.cr3, 4, MANY_MEMORY + i * PAGE_2M, 0, 2);
	directories = fake_read(&fake, walk.tables.cr3 + (MANY_MEMORY >> 39 & 511) * 8) & ~UINT64_C(0xfff);
	pages = fake_read(&fake, directories);
	for (unsigned i = 0; i < 512; i++)
		fake_write(&fake, directories + UINT64_C(8) * i, pages);
}

START_TEST(a_full_table_drops_and_counts)
{
	const struct task_view view = {.kernel = &kernel.os, .walk = &walk, .regs = &regs};
	const struct task idle = task_of(0);
	struct task task = task_of(1);
	struct session_statistics statistics;

	ram_map_often();
	for (unsigned i = 0; i < MANY; i++) {
		task.address = MANY_MEMORY + i * PAGE_2M + FAKE_TASK(1);
		session_off_cpu_switched(&session, 0, &view, &task, &idle, 1000);
		sampler_statistics_read(&sampler, NULL, &statistics);
		if (i == 10000)
			ck_assert_uint_eq(statistics.off_cpu_dropped, 0);
	}
	ck_assert_uint_ge(statistics.off_cpu_dropped, MANY - 32768);
	/* What is in it is found, and makes room. */
	task.address = MANY_MEMORY + FAKE_TASK(1);
	session_off_cpu_switched(&session, 0, &view, &idle, &task, 2000);
	check_sample(1, VPROF_TASK_SLEEPING, 2000, 1000);
	session_off_cpu_switched(&session, 0, &view, &task, &idle, 3000);
	session_off_cpu_switched(&session, 0, &view, &idle, &task, 3001);
	check_sample(1, VPROF_TASK_SLEEPING, 3001, 1);
}
END_TEST

START_TEST(no_tasks_no_waits)
{
	g_autoptr(GError) error = NULL;

	session_off_cpu_stop(&session);
	kernel.has_list = false;
	kernel.os.why[OS_LIST] = "no init_task";
	kernel_layout_settle(&kernel);
	ck_assert(!session_off_cpu_start(&session, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED));
	ck_assert_ptr_nonnull(strstr(error->message, "no init_task"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session_off_cpu");
	TCase *tests = tcase_create("session_off_cpu");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_wait_lasts_from_switch_to_switch);
	tcase_add_test(tests, waiting_for_a_processor_is_a_sample_of_its_own);
	tcase_add_test(tests, a_wait_has_a_waker_and_a_lock);
	tcase_add_test(tests, interrupts_are_told_by_the_task);
	tcase_add_test(tests, what_is_no_wait_is_left_out);
	tcase_add_test(tests, what_cannot_be_read_is_counted);
	tcase_add_test(tests, kernel_threads_without_work_on_request);
	tcase_add_test(tests, a_full_table_drops_and_counts);
	tcase_add_test(tests, no_tasks_no_waits);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
