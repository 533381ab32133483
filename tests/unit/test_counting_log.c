// SPDX-License-Identifier: BSD-2-Clause
/* What a counter of tasks writes at switches and ends of tasks in memory laid out by hand. */
#include <check.h>
#include <stdlib.h>
#include <vprof/exit.h>

#include "read_ring.h"
#include "ring_account.h"
#include "run_suite.h"
#include "sample/counting_log.h"
#include "task_pages.h"

#define RING_BYTES 8192u
#define SWITCH_TO UINT64_C(0xffffffff81001234)
#define FIRST_ID 40u
#define VCPUS 2u

static struct guest_regs regs;
static const struct task_view view = {&kernel.os, &walk, &regs};
static struct task_claims claims;
static struct task_totals totals;
static struct counting_log logs[VCPUS];

static void begin(void)
{
	memset(&claims, 0, sizeof(claims));
	memset(&totals, 0, sizeof(totals));
	for (unsigned i = 0; i < VCPUS; i++)
		counting_log_init(&logs[i], &kernel.os, i, FIRST_ID + i, ring, &totals, &claims);
}

static void setup(void)
{
	task_pages_init(1);
	regs = (struct guest_regs){.valid = true};
	guest_regs_set_ip(&regs, SWITCH_TO);
	read_ring_open(RING_BYTES);
	begin();
}

/* The task runs on the vCPU and counts that. Its other values are told apart by factors. */
static void run(unsigned vcpu, const struct task *task, uint64_t value)
{
	const struct counter_reading slice = {.value = value, .enabled_ns = 3 * value, .running_ns = 2 * value};

	counting_log_entered(&logs[vcpu], &view, task);
	counting_log_left(&logs[vcpu], &view, task, &slice);
}

/* "fork 7 comm 7 7:100@0 total 7:123@1 exit 7 ", ... as the ring has it. */
static char *said(void)
{
	const struct perf_event_header *record;
	GString *text = g_string_new(NULL);
	struct record_sample sample;
	struct record_task task;
	struct record_comm comm;
	struct record_read read;
	struct record_id id;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)) != NULL) {
		if (record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample)) {
			ck_assert_uint_eq(sample.id, FIRST_ID + sample.cpu);
			ck_assert_uint_eq(sample.ip, sample.misc == PERF_RECORD_MISC_HYPERVISOR
			                                     ? vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0)
			                                     : SWITCH_TO);
			g_string_append_printf(text, "%s%d:%lu@%u ",
			                       sample.misc == PERF_RECORD_MISC_KERNEL ? "" : "end ", (int)sample.tid,
			                       (unsigned long)sample.period, sample.cpu);
			continue;
		}
		ck_assert(record_id_decode(record, bytes, VPROF_SAMPLE_TYPE, &id));
		ck_assert_uint_eq(id.id, FIRST_ID + id.cpu);
		if (record_read_decode(record, bytes, VPROF_READ_FORMAT, &read)) {
			ck_assert_uint_eq(read.enabled_ns, 3 * read.value);
			ck_assert_uint_eq(read.running_ns, 2 * read.value);
			g_string_append_printf(text, "total %u:%lu@%u ", read.tid, (unsigned long)read.value, id.cpu);
		} else if (record_task_decode(record, bytes, &task)) {
			g_string_append_printf(text, "%s %u ", task.type == PERF_RECORD_FORK ? "fork" : "exit",
			                       task.tid);
		} else if (record_comm_decode(record, bytes, &comm)) {
			g_string_append_printf(text, "%s %u ", comm.exec ? "exec" : "comm", comm.tid);
		}
	}
	ring_reader_release(reader);
	return g_string_free(text, FALSE);
}

static void assert_said(const char *expected)
{
	g_autofree char *text = said();

	ck_assert_str_eq(text, expected);
}

START_TEST(a_total_is_the_sum_of_all_vcpus)
{
	struct task init = task_make(0, 1, "init"), shell = task_make(1, 7, "sh");

	run(0, &shell, 100);
	assert_said("fork 7 comm 7 7:100@0 ");
	run(0, &init, 5);
	assert_said("fork 1 comm 1 1:5@0 ");
	run(1, &shell, 20);
	assert_said("comm 7 7:20@1 ");
	task_exit(1);
	run(0, &shell, 3);
	assert_said("7:3@0 total 7:123@0 exit 7 ");
	/* Another task at the same address counts from 0. */
	shell = task_make(1, 8, "sh");
	fake.ram[TASKS_GPA + 512 + kernel.tasks.exit_state] = 0;
	run(1, &shell, 4);
	assert_said("fork 8 comm 8 8:4@1 ");
	task_exit(1);
	run(1, &shell, 0);
	assert_said("8:0@1 total 8:4@1 exit 8 ");
	task_exit(0);
	run(1, &init, 1);
	assert_said("comm 1 1:1@1 total 1:6@1 exit 1 ");
}
END_TEST

START_TEST(what_runs_when_it_is_stopped_is_written)
{
	const struct counter_reading slice = {.value = 30};
	struct task shell = task_make(1, 7, "sh");

	run(0, &shell, 100);
	counting_log_entered(&logs[1], &view, &shell);
	counting_log_end(&logs[0], NULL);
	counting_log_end(&logs[1], &slice);
	assert_said("fork 7 comm 7 7:100@0 comm 7 end 7:30@1 ");
	/* A start begins anew. */
	begin();
	task_exit(1);
	run(0, &shell, 8);
	assert_said("fork 7 comm 7 7:8@0 total 7:8@0 exit 7 ");
}
END_TEST

/* The slice is that of the task which was switched to, and has its last name. */
START_TEST(a_switch_that_was_not_seen)
{
	const struct counter_reading slice = {.value = 30};
	struct task init = task_make(0, 1, "init"), shell = task_make(1, 7, "sh");

	counting_log_entered(&logs[0], &view, &shell);
	counting_log_left(&logs[0], &view, &init, &slice);
	assert_said("fork 7 comm 7 7:30@0 ");
	counting_log_entered(&logs[0], &view, NULL);
	counting_log_left(&logs[0], &view, NULL, &slice);
	assert_said("-1:30@0 ");
}
END_TEST

START_TEST(tasks_without_a_slot_have_no_total)
{
	struct task init = task_make(0, 1, "init"), shell = task_make(1, 7, "sh");

	for (unsigned i = 0; i < TASK_TOTALS_BUCKETS; i++)
		for (unsigned j = 0; j < TASK_TOTALS_WAYS - 1; j++)
			totals.slots[i][j].task = 2; /* no hash is even */
	run(0, &init, 10);
	task_exit(0);
	run(0, &init, 1);
	assert_said("fork 1 comm 1 1:10@0 1:1@0 total 1:11@0 exit 1 ");
	for (unsigned i = 0; i < TASK_TOTALS_BUCKETS; i++)
		totals.slots[i][TASK_TOTALS_WAYS - 1].task = 2;
	run(0, &shell, 10);
	task_exit(1);
	run(0, &shell, 1);
	assert_said("fork 7 comm 7 7:10@0 7:1@0 exit 7 ");
}
END_TEST

static struct session_statistics statistics(void)
{
	struct session_statistics now;

	counting_log_statistics_read(&logs[0], &now);
	return now;
}

START_TEST(a_full_ring_drops_slices_and_counts_them)
{
	struct task shell = task_make(1, 7, "sh");
	const uint64_t runs = RING_BYTES / 56 + 10;

	for (uint64_t i = 0; i < runs; i++)
		run(0, &shell, 1);
	ck_assert_uint_eq(statistics().sample + statistics().dropbuf_sample, runs);
	ck_assert_uint_ge(statistics().dropbuf_sample, 10);
	ck_assert_uint_eq(statistics().dropevt, statistics().dropbuf_sample);
	ck_assert_uint_eq(statistics().stalls, 0);
}
END_TEST

/* With every kind of reader, each slice was read, is in the ring or was lost. */
START_TEST(slices_are_read_or_lost)
{
	struct task shell = task_make(1, 7, "sh"), init = task_make(0, 1, "init");
	struct ring_account account = {NULL};

	for (unsigned i = 0; i < 60; i++) {
		for (unsigned j = 0; j < 10; j++)
			run(0, j % 2 == 0 ? &shell : &init, 1);
		account_turn(&account, ring, (enum account_reader)_i);
	}
	counting_log_end(&logs[0], NULL);
	ck_assert_uint_eq(statistics().sample + statistics().dropbuf_sample, 600);
	ck_assert_uint_eq(statistics().readevt, account.samples + account.others);
	account_close(&account, ring, 600);
}
END_TEST

START_TEST(a_full_ring_stalls_the_count)
{
	const struct counter_reading slice = {.value = 1, .enabled_ns = 3, .running_ns = 2};
	struct task shell = task_make(1, 7, "sh");
	uint64_t slices = 0;

	logs[0].stalls = true;
	while (counting_log_entered(&logs[0], &view, &shell)) {
		counting_log_left(&logs[0], &view, &shell, &slice);
		ck_assert_uint_le(++slices, RING_BYTES * 3 / 4 / 56);
	}
	ck_assert(counting_log_is_stalled(&logs[0]));
	ck_assert_uint_eq(statistics().sample, slices);
	ck_assert_uint_eq(statistics().stalls, 1);
	ck_assert_uint_eq(statistics().dropevt, 0);
	ck_assert_uint_eq(statistics().readevt, 0);
	g_free(said());
	ck_assert_uint_eq(statistics().readevt, slices + 2); /* fork and comm */

	/* The total of a task that ends meanwhile has what was counted. */
	g_autofree char *expected = g_strdup_printf("total 7:%lu@0 exit 7 ", (unsigned long)slices);

	task_exit(1);
	counting_log_passed(&logs[0], &view, &shell);
	assert_said(expected);
	ck_assert(!counting_log_is_stalled(&logs[0]));
	const uint64_t stalled_ns = statistics().stalled_ns;

	ck_assert_uint_gt(stalled_ns, 0);
	ck_assert(counting_log_entered(&logs[0], &view, &shell));
	ck_assert_uint_eq(statistics().stalled_ns, stalled_ns);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("counting_log");
	TCase *tests = tcase_create("counting_log");

	tcase_add_checked_fixture(tests, setup, read_ring_close);
	tcase_add_test(tests, a_total_is_the_sum_of_all_vcpus);
	tcase_add_test(tests, what_runs_when_it_is_stopped_is_written);
	tcase_add_test(tests, a_switch_that_was_not_seen);
	tcase_add_test(tests, tasks_without_a_slot_have_no_total);
	tcase_add_test(tests, a_full_ring_drops_slices_and_counts_them);
	tcase_add_loop_test(tests, slices_are_read_or_lost, 0, ACCOUNT_READERS);
	tcase_add_test(tests, a_full_ring_stalls_the_count);
	suite_add_tcase(suite, tests);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
