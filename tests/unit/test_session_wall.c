// SPDX-License-Identifier: BSD-2-Clause
/* Samples of the tasks that wait, of a guest in memory laid out by hand. */
#include <vprof/recording.h>

#include "run_suite.h"
#include "sample/session_wall.h"
#include "wait_session.h"

#define S UINT64_C(1000000000)

static bool task_2_runs;     /* whenever its stack is read */
static unsigned stacks_read; /* of task 3 */

static bool memory_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	if (from.value == FAKE_STACK(2) && task_2_runs)
		fake.ram[FAKE_TASK(2) + fake_list_layout.involuntary]++;
	stacks_read += from.value == FAKE_STACK(3);
	return fake_memory_read(guest, from, to, bytes);
}

static void vcpus_look(struct guest *guest G_GNUC_UNUSED, void (*take)(void *data, const struct guest_vcpu *vcpu),
                       void *data)
{
	take(data, &(struct guest_vcpu){.regs = {.cr3 = walk.tables.cr3}});
}

static const struct guest_ops ops = {.memory_read = memory_read, .vcpus_look = vcpus_look};

static void setup(void)
{
	wait_session_open(&(struct session_config){.wall_hz = 10});
	ck_assert_str_eq(session.config.events[1].name, VPROF_WALL_EVENT);
	fake.guest.ops = &ops;
	fake_number(&fake, FAKE_TASK(4) + fake_list_layout.on_cpu.at, 1);
	task_2_runs = false;
	ck_assert(session_wall_start(&session, NULL));
}

static void teardown(void)
{
	session_wall_stop(&session);
	wait_session_close();
}

/* The samples of a look: of task i, this period in ns; 0: none. */
static void check_samples(const uint64_t periods[6])
{
	const struct perf_event_header *record;
	uint64_t found[6] = {0};
	struct perf_event_attr attr;
	struct record_sample sample;
	size_t bytes;

	session_config_attr(&session.config, false, 1, &attr);
	ck_assert_uint_eq(attr.sample_period, S / 10);
	while ((record = ring_reader_next(reader, &bytes))) {
		if (record->type != PERF_RECORD_SAMPLE)
			continue;
		ck_assert(record_sample_decode(record, bytes, attr.sample_type, &sample));
		const uint32_t number = sample.tid - 100;

		ck_assert_uint_eq(sample.id, session_event_id(1, 0));
		ck_assert_uint_le(number, 5);
		ck_assert_uint_eq(sample.pid, number <= 3 ? 101 : sample.tid);
		/* Not the scheduler, but what has called it. */
		ck_assert_uint_eq(sample.ip, FAKE_CODE + UINT64_C(16) * number);
		ck_assert_uint_eq(sample.n_chain, 2);
		ck_assert_uint_eq(sample.chain[1], sample.ip);
		ck_assert_uint_eq(found[number], 0);
		found[number] = sample.period;
		if (number != 5)
			ck_assert_uint_eq((sample.misc & VPROF_TASK_STATE_MASK) >> VPROF_TASK_STATE_SHIFT,
			                  VPROF_TASK_SLEEPING);
	}
	ring_reader_release(reader);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_uint_eq(found[i], periods[i]);
}

START_TEST(a_period_is_the_time_without_the_cpu_time)
{
	ck_assert_uint_eq(session_wall_look(&session, 10 * S), 0);
	check_samples((uint64_t[6]){0});
	fake_write(&fake, FAKE_TASK(1) + fake_list_layout.runtime, 1000000 + 300000000);
	ck_assert_uint_eq(session_wall_look(&session, 11 * S), 4);
	check_samples((uint64_t[6]){0, S - 300000000, S, S, 0, S});
	/* One that runs has its waiting counted once it waits again. */
	fake_number(&fake, FAKE_TASK(4) + fake_list_layout.on_cpu.at, 0);
	ck_assert_uint_eq(session_wall_look(&session, 13 * S), 5);
	check_samples((uint64_t[6]){0, 2 * S, 2 * S, 2 * S, 3 * S, 2 * S});
}
END_TEST

START_TEST(a_pause_is_left_out)
{
	session_wall_look(&session, 10 * S);
	ck_assert_uint_eq(session_wall_look(&session, 11 * S), 4);
	check_samples((uint64_t[6]){0, S, S, S, 0, S});
	fake.guest.pause = "is paused";
	ck_assert_uint_eq(session_wall_look(&session, 12 * S), 0);
	ck_assert_uint_eq(session_wall_look(&session, 20 * S), 0);
	fake.guest.pause = NULL;
	ck_assert_uint_eq(session_wall_look(&session, 21 * S), 4);
	check_samples((uint64_t[6]){0, S, S, S, 0, S});
}
END_TEST

START_TEST(a_task_that_runs_meanwhile)
{
	struct session_statistics statistics;

	session_wall_look(&session, 10 * S);
	task_2_runs = true;
	ck_assert_uint_eq(session_wall_look(&session, 11 * S), 3);
	check_samples((uint64_t[6]){0, S, 0, S, 0, S});
	sampler_statistics_read(&sampler, NULL, &statistics);
	ck_assert_uint_eq(statistics.wall_torn, 1);
	task_2_runs = false;
	ck_assert_uint_eq(session_wall_look(&session, 12 * S), 4);
	check_samples((uint64_t[6]){0, S, 2 * S, S, 0, S});
}
END_TEST

START_TEST(kernel_threads_without_work_are_left_out)
{
	fake_number(&fake, FAKE_TASK(5) + fake_list_layout.flags, 0x200000);
	session_wall_look(&session, 10 * S);
	ck_assert_uint_eq(session_wall_look(&session, 11 * S), 3);
	check_samples((uint64_t[6]){0, S, S, S, 0, 0});
	fake_number(&fake, FAKE_TASK(5) + fake_list_layout.state.at, 2);
	ck_assert_uint_eq(session_wall_look(&session, 12 * S), 4);
	check_samples((uint64_t[6]){0, S, S, S, 0, S});
	fake_number(&fake, FAKE_TASK(5) + fake_list_layout.state.at, 1);
	session.config.idle_threads = true;
	ck_assert_uint_eq(session_wall_look(&session, 13 * S), 4);
	check_samples((uint64_t[6]){0, S, S, S, 0, S});
}
END_TEST

/* Its stack is walked again once it has run, and now and then. */
START_TEST(a_task_that_has_not_run_is_not_walked_again)
{
	session_wall_look(&session, 10 * S);
	stacks_read = 0;
	for (unsigned i = 11; i < 15; i++) {
		ck_assert_uint_eq(session_wall_look(&session, i * S), 4);
		check_samples((uint64_t[6]){0, S, S, S, 0, S});
		ck_assert_uint_eq(stacks_read, 1);
	}
	fake_write(&fake, FAKE_TASK(3) + fake_list_layout.voluntary, 8);
	fake_write(&fake, FAKE_STACK(3) + 0x88, FAKE_CODE + UINT64_C(0x30)); /* as it was */
	ck_assert_uint_eq(session_wall_look(&session, 15 * S), 4);
	ck_assert_uint_eq(stacks_read, 2);
	for (unsigned i = 16; i < 16 + 64; i++)
		session_wall_look(&session, i * S);
	ck_assert_uint_eq(stacks_read, 2);
	session_wall_look(&session, 80 * S);
	ck_assert_uint_eq(stacks_read, 3);
	session_wall_forget(&session);
	ck_assert_uint_eq(session_wall_look(&session, 81 * S), 0);
	ck_assert_uint_eq(session_wall_look(&session, 82 * S), 4);
	ck_assert_uint_eq(stacks_read, 4);
}
END_TEST

START_TEST(what_is_dropped_is_counted)
{
	struct session_statistics statistics;

	session_wall_look(&session, 10 * S);
	fake_write(&fake, FAKE_TASK(3) + fake_list_layout.stack_pointer, FAKE_MEMORY + FAKE_RAM_BYTES);
	ck_assert_uint_eq(session_wall_look(&session, 11 * S), 3);
	check_samples((uint64_t[6]){0, S, S, 0, 0, S});
	fake_write(&fake, FAKE_TASK(5) + fake_list_layout.tasks, FAKE_MEMORY + FAKE_RAM_BYTES);
	session_wall_look(&session, 12 * S);
	kernel.has_list = false;
	kernel_layout_settle(&kernel);
	ck_assert_uint_eq(session_wall_look(&session, 13 * S), 0);
	sampler_statistics_read(&sampler, NULL, &statistics);
	ck_assert_uint_eq(statistics.wall_looks, 4);
	ck_assert_uint_ge(statistics.wall_no_frame, 1);
	ck_assert_uint_eq(statistics.wall_broken, 2);
	ck_assert_uint_eq(statistics.wall_torn, 0);
}
END_TEST

/* Another task where the last one was begins anew, and so does one that came back. */
START_TEST(tasks_come_and_go)
{
	const uint64_t tasks = fake_list_layout.tasks;

	session_wall_look(&session, 10 * S);
	fake_write(&fake, FAKE_TASK(1) + fake_task_layout.start_time, 77);
	ck_assert_uint_eq(session_wall_look(&session, 11 * S), 3);
	check_samples((uint64_t[6]){0, 0, S, S, 0, S});
	fake_ring(&fake, (uint64_t[]){FAKE_INIT_TASK + tasks, FAKE_TASK(1) + tasks, FAKE_TASK(4) + tasks}, 3);
	ck_assert_uint_eq(session_wall_look(&session, 12 * S), 3);
	check_samples((uint64_t[6]){0, S, S, S, 0, 0});
	fake_ring(
		&fake,
		(uint64_t[]){FAKE_INIT_TASK + tasks, FAKE_TASK(1) + tasks, FAKE_TASK(4) + tasks, FAKE_TASK(5) + tasks},
		4);
	ck_assert_uint_eq(session_wall_look(&session, 13 * S), 3);
	check_samples((uint64_t[6]){0, S, S, S, 0, 0});
}
END_TEST

START_TEST(no_tasks_no_look)
{
	GError *error = NULL;

	session_wall_stop(&session);
	kernel.has_list = false;
	kernel.os.why[OS_LIST] = "no init_task";
	kernel_layout_settle(&kernel);
	ck_assert(!session_wall_start(&session, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED));
	ck_assert_ptr_nonnull(strstr(error->message, "no init_task"));
	g_clear_error(&error);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session_wall");
	TCase *tests = tcase_create("session_wall");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_period_is_the_time_without_the_cpu_time);
	tcase_add_test(tests, a_pause_is_left_out);
	tcase_add_test(tests, a_task_that_runs_meanwhile);
	tcase_add_test(tests, kernel_threads_without_work_are_left_out);
	tcase_add_test(tests, a_task_that_has_not_run_is_not_walked_again);
	tcase_add_test(tests, what_is_dropped_is_counted);
	tcase_add_test(tests, tasks_come_and_go);
	tcase_add_test(tests, no_tasks_no_look);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
