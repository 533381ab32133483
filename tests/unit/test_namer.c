// SPDX-License-Identifier: BSD-2-Clause
/* What is said in a ring about tasks, of tasks in memory laid out by hand. */
#include <check.h>
#include <stdlib.h>

#include "read_ring.h"
#include "run_suite.h"
#include "stream/namer.h"
#include "task_pages.h"

#define TASKS_PAGES 8u
#define RING_BYTES 4096u

static struct task_claims claims;
static struct announcer announcer;
static struct namer namer;
static uint64_t now;

static void setup(void)
{
	task_pages_init(TASKS_PAGES);
	memset(&claims, 0, sizeof(claims));
	read_ring_open(RING_BYTES);
	announcer = (struct announcer){.ring = ring};
	namer_init(&namer, &kernel.os, &claims, &announcer, false);
	now = 100;
}

static void sample(struct namer *by, const struct task *task)
{
	const struct record_id id = {.pid = task->pid, .tid = task->tid, .time_ns = now++, .cpu = 1, .id = 9};

	namer_task(by, &walk, task, &id);
}

/* "fork 7<1 comm 7 sh", ... as the ring has it. */
static char *said(void)
{
	const struct perf_event_header *record;
	GString *text = g_string_new(NULL);
	struct record_task task;
	struct record_comm comm;
	size_t bytes;

	while ((record = ring_reader_next(reader, &bytes)) != NULL) {
		struct record_id id;

		ck_assert(record_id_decode(record, bytes, VPROF_SAMPLE_TYPE, &id));
		if (record_task_decode(record, bytes, &task)) {
			ck_assert_uint_eq(task.time_ns, id.time_ns);
			g_string_append_printf(text, "%s %u<%u ", task.type == PERF_RECORD_FORK ? "fork" : "exit",
			                       task.tid, task.parent_tid);
		} else if (record_comm_decode(record, bytes, &comm)) {
			g_string_append_printf(text, "%s %u %s ", comm.exec ? "exec" : "comm", comm.tid, comm.comm.raw);
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

START_TEST(a_task_appears_changes_its_name_and_goes)
{
	struct task init = task_make(0, 1, "init"), shell = task_make(1, 7, "sh");

	sample(&namer, &init);
	assert_said("fork 1<1 comm 1 init ");
	sample(&namer, &shell);
	assert_said("fork 7<1 comm 7 sh ");
	sample(&namer, &shell);
	assert_said("");
	g_strlcpy(shell.comm, "ls", sizeof(shell.comm));
	sample(&namer, &shell);
	assert_said("comm 7 ls ");

	task_exit(1);
	for (unsigned i = 0; i < TASK_CACHE_ENTRIES; i++)
		sample(&namer, &init);
	assert_said("exit 7<0 ");
	for (unsigned i = 0; i < TASK_CACHE_ENTRIES; i++)
		sample(&namer, &init);
	assert_said("");
}
END_TEST

START_TEST(another_task_in_the_place_of_one_that_went)
{
	struct task init = task_make(0, 1, "init"), first = task_make(1, 7, "sh"), second;

	sample(&namer, &first);
	second = task_make(1, 8, "sh");
	sample(&namer, &second);
	assert_said("fork 7<1 comm 7 sh fork 8<1 comm 8 sh ");
	for (unsigned i = 0; i < TASK_CACHE_ENTRIES; i++)
		sample(&namer, &init);
	assert_said("fork 1<1 comm 1 init exit 7<0 ");
}
END_TEST

START_TEST(several_vcpus_announce_a_task_once)
{
	struct task init = task_make(0, 1, "init"), shell = task_make(1, 7, "sh");
	struct namer other;

	namer_init(&other, &kernel.os, &claims, &announcer, false);
	sample(&namer, &shell);
	sample(&other, &shell);
	assert_said("fork 7<1 comm 7 sh comm 7 sh ");
	task_exit(1);
	sample(&namer, &init);
	sample(&other, &init);
	g_free(said());
	for (unsigned i = 0; i < TASK_CACHE_ENTRIES; i++) {
		sample(&other, &init);
		sample(&namer, &init);
	}
	assert_said("exit 7<0 ");
}
END_TEST

static void run(struct namer *by, const struct task *task, bool enters)
{
	const struct record_id id = {.pid = task->pid, .tid = task->tid, .time_ns = now++, .cpu = 1, .id = 9};

	(enters ? namer_entered : namer_left)(by, &walk, task, &id);
}

static void task_execute(unsigned i)
{
	fake.ram[TASKS_GPA + i * 512 + kernel.tasks.self_exec_id]++;
}

/* With two vCPUs, each thing once: what is executed by the one that the task ran on, and its end. */
START_TEST(switches_miss_nothing)
{
	struct task init = task_make(0, 1, "init"), shell = task_make(1, 7, "sh"), idle = task_make(2, 0, "swapper/0");
	struct namer other;

	namer_init(&namer, &kernel.os, &claims, &announcer, true);
	namer_init(&other, &kernel.os, &claims, &announcer, true);
	run(&namer, &idle, false);
	run(&namer, &init, true);
	assert_said("fork 1<1 comm 1 init ");
	run(&namer, &init, false);
	run(&namer, &shell, true);
	assert_said("fork 7<1 comm 7 sh ");
	/* Another program of that name, which a sample sees. */
	task_execute(1);
	sample(&namer, &shell);
	assert_said("exec 7 sh ");
	run(&namer, &shell, false);
	assert_said("");
	run(&other, &shell, true);
	assert_said("comm 7 sh ");
	task_execute(1);
	g_strlcpy(shell.comm, "ls", sizeof(shell.comm));
	run(&other, &shell, false);
	assert_said("exec 7 ls ");
	run(&namer, &shell, true);
	assert_said("comm 7 ls ");
	task_exit(1);
	sample(&other, &init);
	run(&namer, &shell, false);
	assert_said("comm 1 init exit 7<0 ");
	for (unsigned i = 0; i < TASK_CACHE_ENTRIES; i++) {
		sample(&namer, &init);
		sample(&other, &init);
	}
	assert_said("");
}
END_TEST

START_TEST(idle_tasks_are_not_announced)
{
	struct task idle = task_make(0, 0, "swapper/1");

	sample(&namer, &idle);
	assert_said("");
}
END_TEST

/* What found no room is said before a later sample, in full. */
START_TEST(a_full_ring_is_tried_again)
{
	unsigned n = 0;

	while (announcer.dropped == 0) {
		struct task task = task_make(n % 64, 100 + n, "many");

		n++;
		sample(&namer, &task);
	}
	struct task last = task_make((n - 1) % 64, 100 + n - 1, "many");
	g_autofree char *expected = g_strdup_printf("fork %u<", last.tid);

	g_free(said());
	sample(&namer, &last);
	g_autofree char *text = said();

	ck_assert_msg(g_str_has_prefix(text, expected) && strstr(text, "many"), "%s", text);
	ck_assert_ptr_nonnull(task_cache_find(&namer.tasks, &last));
	/* So it was not lost. */
	ck_assert_uint_eq(ring_statistics(ring).dropped, 0);
	ck_assert_uint_eq(ring_statistics(ring).full_times, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("namer");
	TCase *tests = tcase_create("namer");

	tcase_add_checked_fixture(tests, setup, read_ring_close);
	tcase_add_test(tests, a_task_appears_changes_its_name_and_goes);
	tcase_add_test(tests, another_task_in_the_place_of_one_that_went);
	tcase_add_test(tests, several_vcpus_announce_a_task_once);
	tcase_add_test(tests, switches_miss_nothing);
	tcase_add_test(tests, idle_tasks_are_not_announced);
	tcase_add_test(tests, a_full_ring_is_tried_again);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
