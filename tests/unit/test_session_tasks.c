// SPDX-License-Identifier: BSD-2-Clause
/* One look at the tasks of a guest in memory laid out by hand, some of which run. */
#include <check.h>

#include "fake_tasks.h"
#include "run_suite.h"
#include "sample/session_tasks.h"

static struct fake_guest fake;
static struct page_walk walk;
static struct kernel_layout kernel;
static struct guest_vcpu vcpus[2];
static size_t n_vcpus;
static unsigned switches_left; /* task 2 runs between so many pairs of reads */
static struct task_look *look;

/* ---- in the place of sample/session.c ---- */

struct guest *session_guest(const struct session *session G_GNUC_UNUSED)
{
	return &fake.guest;
}

const struct os_kernel *session_kernel(struct session *session G_GNUC_UNUSED)
{
	kernel_layout_settle(&kernel);
	return &kernel.os;
}

struct unwind_config session_unwinding(struct session *session G_GNUC_UNUSED)
{
	return (struct unwind_config){.depth = UNWIND_DEPTH_DEFAULT};
}

struct table_store *session_tables(struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

bool session_kernel_walk(const struct session *session G_GNUC_UNUSED, struct page_walk *out)
{
	*out = walk;
	return walk.tables.cr3 != 0;
}

/* ---- the guest ---- */

static void vcpus_look(struct guest *guest G_GNUC_UNUSED, void (*take)(void *data, const struct guest_vcpu *vcpu),
                       void *data)
{
	for (size_t i = 0; i < n_vcpus; i++)
		take(data, &vcpus[i]);
}

/* Each look at the stack of task 2 finds that it has run, until it has not. */
static bool memory_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	if (from.value == FAKE_STACK(2) && switches_left > 0) {
		switches_left--;
		fake.ram[FAKE_TASK(2) + fake_list_layout.involuntary]++;
	}
	return fake_memory_read(guest, from, to, bytes);
}

static const struct guest_ops ops = {.memory_read = memory_read, .vcpus_look = vcpus_look};

static void setup(void)
{
	fake_tasks_init(&fake, &walk);
	fake.guest.ops = &ops;
	fake_processors_init(&fake, &kernel);
	fake_number(&fake, FAKE_TASK(4) + fake_list_layout.on_cpu.at, 1);
	/* Task 4 is in user space, where the GS base is its own; the idle task is in the kernel. */
	vcpus[0] = (struct guest_vcpu){.apic_id = 0,
	                               .whole = true,
	                               .regs = {.rip = 0x401000, .gs_base = 0x1000, .cpl = 3, .cr3 = walk.tables.cr3}};
	vcpus[1] = (struct guest_vcpu){
		.apic_id = 7,
		.whole = true,
		.regs = {.rip = FAKE_CODE, .gs_base = FAKE_MEMORY + FAKE_IDLE_AREA, .cpl = 0, .cr3 = walk.tables.cr3}};
	n_vcpus = 2;
	switches_left = 0;
}

static void teardown(void)
{
	g_clear_pointer(&look, task_look_free);
}

static const struct looked_task *at(unsigned i)
{
	return &g_array_index(look->tasks, struct looked_task, i);
}

/* As many tasks are seen. */
static void take(const struct task_targets *targets, guint n)
{
	const struct task_look_config config = {.targets = targets, .depth = 20};
	GError *error = NULL;

	task_look_free(look);
	look = task_look_new(NULL, &config, &error);
	g_assert_no_error(error);
	ck_assert_uint_eq(look->tasks->len, n);
}

START_TEST(sleepers_and_what_runs)
{
	take(NULL, 6);
	ck_assert_int_eq(look->end, TASK_LIST_WHOLE);
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_uint_eq(at(i)->listed.task.tid, 101 + i);
		ck_assert_int_eq(at(i)->runs, i == 3);
		ck_assert_int_eq(at(i)->listed.state, i == 3 ? 'R' : 'S');
		ck_assert_uint_eq(at(i)->wait_channel, i == 3 ? 0 : FAKE_CODE + 16 * (i + 1));
		ck_assert_uint_eq(at(i)->n_chain, i == 3 ? 2 : 3);
	}
	ck_assert_uint_eq(look->words[at(3)->chain + 1], 0x401000);
	ck_assert_str_eq(at(5)->listed.task.comm, "swapper/1");
	ck_assert(at(5)->runs);
	ck_assert_uint_eq(look->words[at(5)->chain + 1], FAKE_CODE);
	ck_assert_uint_eq(look->torn + look->late + look->unseen, 0);
}
END_TEST

START_TEST(only_those_that_are_wanted)
{
	struct task_targets targets = {.n = 1, .targets = {{.kind = TASK_TARGET_PID, .pid = 101}}};

	take(&targets, 3);
	targets.targets[0] = (struct task_target){.kind = TASK_TARGET_COMM, .comm = "task[4]"};
	take(&targets, 0);
	targets.targets[0] = (struct task_target){.kind = TASK_TARGET_COMM, .comm = "t?sk4"};
	take(&targets, 1);
	ck_assert_uint_eq(at(0)->n_chain, 2);
}
END_TEST

/* By a view that has page tables alone, as of an attached guest. */
START_TEST(registers_that_are_not_known)
{
	vcpus[0].whole = vcpus[1].whole = false;
	take(NULL, 5);
	ck_assert_uint_eq(look->unseen, 1);
	ck_assert(at(3)->runs);
	ck_assert_uint_eq(at(3)->n_chain, 0);
	/* It sleeps by now. */
	fake_number(&fake, FAKE_TASK(4) + fake_list_layout.on_cpu.at, 0);
	take(NULL, 5);
	ck_assert_uint_eq(look->unseen, 0);
	ck_assert_uint_eq(at(3)->n_chain, 3);
}
END_TEST

START_TEST(an_area_that_does_not_name_itself)
{
	fake_write(&fake, FAKE_IDLE_AREA + fake_task_layout.this_cpu_off, FAKE_MEMORY + FAKE_AREA);
	take(NULL, 5);
	/* A task that is none. */
	fake_write(&fake, FAKE_AREA + fake_task_layout.current_task, 0x1000);
	take(NULL, 5);
	ck_assert_uint_eq(look->unseen, 1);
}
END_TEST

START_TEST(a_task_that_runs_meanwhile)
{
	switches_left = 2;
	take(NULL, 6);
	ck_assert_uint_eq(look->torn, 0);
	ck_assert_uint_eq(at(1)->n_chain, 3);
	ck_assert_uint_eq(at(1)->listed.switches, 7 + 2 + 2);
	switches_left = 100;
	take(NULL, 6);
	ck_assert_uint_eq(look->torn, 1);
	ck_assert_uint_eq(at(1)->n_chain, 0);
}
END_TEST

START_TEST(one_that_has_ended_has_no_stack)
{
	fake_number(&fake, FAKE_TASK(5) + fake_task_layout.exit_state, 0x20);
	take(NULL, 6);
	ck_assert_int_eq(at(4)->listed.state, 'Z');
	ck_assert_uint_eq(at(4)->n_chain, 0);
	ck_assert_uint_eq(look->torn + look->late + look->unseen, 0);
}
END_TEST

START_TEST(why_there_is_no_look)
{
	const struct task_look_config config = {.depth = 20};
	GError *error = NULL;

	walk.tables.cr3 = 0;
	ck_assert_ptr_null(task_look_new(NULL, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_STATE));
	g_clear_error(&error);
	kernel.has_list = false;
	kernel.os.why[OS_LIST] = (char *)"it is no Linux";
	ck_assert_ptr_null(task_look_new(NULL, &config, &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED));
	ck_assert_ptr_nonnull(strstr(error->message, "it is no Linux"));
	g_clear_error(&error);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("session_tasks");
	TCase *tests = tcase_create("session_tasks");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, sleepers_and_what_runs);
	tcase_add_test(tests, only_those_that_are_wanted);
	tcase_add_test(tests, registers_that_are_not_known);
	tcase_add_test(tests, an_area_that_does_not_name_itself);
	tcase_add_test(tests, a_task_that_runs_meanwhile);
	tcase_add_test(tests, one_that_has_ended_has_no_stack);
	tcase_add_test(tests, why_there_is_no_look);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
