// SPDX-License-Identifier: BSD-2-Clause
/* Which tasks are meant: by process, name and page tables, and their descendants, in memory laid out by hand. */
#include <check.h>
#include <stdio.h>

#include "fake_guest_memory.h"
#include "guest/page_walk.h"
#include "guest/task_match.h"
#include "linux/kernel.h"
#include "run_suite.h"

#define AREA UINT64_C(0xffff888000040000)
#define AREA_GPA UINT64_C(0x40000)
#define TASKS UINT64_C(0xffff888000050000) /* a page for each */
#define TASKS_GPA UINT64_C(0x50000)
#define N_TASKS 8u

static struct kernel_layout kernel;
static const struct task_layout layout = {
	.this_cpu_off = 0x168,
	.current_task = 0x200,
	.tgid = 0,
	.pid = 4,
	.start_time = 0x10,
	.mm = 0x18,
	.comm = 0x20,
	.real_parent = 0x30,
};

static struct fake_guest fake;
static struct guest_regs regs;
static struct task_cpu cpu;
static struct task_family family;

static uint64_t address_of(unsigned task)
{
	return TASKS + (uint64_t)task * 0x1000;
}

static void task_make(unsigned task, uint32_t pid, uint32_t tid, const char *comm, unsigned parent)
{
	uint64_t gpa = TASKS_GPA + (uint64_t)task * 0x1000;

	memcpy(fake.ram + gpa + layout.tgid, &pid, sizeof(pid));
	memcpy(fake.ram + gpa + layout.pid, &tid, sizeof(tid));
	fake_write(&fake, gpa + layout.start_time, 1000 + tid);
	fake_write(&fake, gpa + layout.real_parent, address_of(parent));
	memset(fake.ram + gpa + layout.comm, 0, TASK_COMM_BYTES);
	memcpy(fake.ram + gpa + layout.comm, comm, strlen(comm));
}

/* swapper is its own parent; init, a shell, its job, the job's child and one of its threads; another shell. */
enum { SWAPPER, INIT, SHELL, JOB, CHILD, THREAD, OTHER };

static void setup(void)
{
	fake_guest_init(&fake);
	uint64_t root = fake_table_new(&fake);

	fake_map(&fake, root, 4, AREA, AREA_GPA, 1);
	for (unsigned i = 0; i < N_TASKS; i++)
		fake_map(&fake, root, 4, address_of(i), TASKS_GPA + (uint64_t)i * 0x1000, 1);
	fake_write(&fake, AREA_GPA + layout.this_cpu_off, AREA);
	task_make(SWAPPER, 0, 0, "swapper/0", SWAPPER);
	task_make(INIT, 1, 1, "init", SWAPPER);
	task_make(SHELL, 50, 50, "sh", INIT);
	task_make(JOB, 60, 60, "job", SHELL);
	task_make(CHILD, 70, 70, "child", JOB);
	task_make(THREAD, 70, 71, "worker", JOB);
	task_make(OTHER, 80, 80, "sh", INIT);
	regs = (struct guest_regs){.cr3 = root, .gs_base = AREA, .valid = true};
	cpu = (struct task_cpu){0};
	task_cpu_note(&cpu, &regs);
	family = (struct task_family){0};
	kernel = (struct kernel_layout){.has_tasks = true, .tasks = layout};
	kernel_layout_settle(&kernel);
}

static bool matches(const struct task_targets *targets, unsigned which)
{
	struct page_walk walk;
	struct task task;

	ck_assert(kernel.os.tasks->read_at(&kernel.os, &cpu, &fake.guest, &regs, address_of(which), &walk, &task));
	const struct task_view view = {&kernel.os, &walk, &regs};

	return task_targets_match(targets, &family, &view, &task);
}

/* `expected`: a letter for each task, in upper case if it is meant. */
static void check_matches(const struct task_targets *targets, const char *expected)
{
	static const char letters[] = "sihjcto";
	char got[sizeof(letters)] = {0};

	for (unsigned i = 0; i <= OTHER; i++)
		got[i] = matches(targets, i) ? (char)(letters[i] - 'a' + 'A') : letters[i];
	ck_assert_str_eq(got, expected);
}

static struct task_targets by_pid(uint32_t pid, bool descendants)
{
	return (struct task_targets){
		.n = 1, .targets = {{.kind = TASK_TARGET_PID, .pid = pid}}, .descendants = descendants};
}

static struct task_targets by_comm(const char *comm, bool descendants)
{
	struct task_targets targets = {.n = 1, .targets = {{.kind = TASK_TARGET_COMM}}, .descendants = descendants};

	g_strlcpy(targets.targets[0].comm, comm, sizeof(targets.targets[0].comm));
	return targets;
}

START_TEST(a_process_is_meant_with_its_threads)
{
	const struct task_targets targets = by_pid(70, false);

	check_matches(&targets, "sihjCTo");
}
END_TEST

START_TEST(descendants_are_meant)
{
	const struct task_targets targets = by_pid(50, true);

	check_matches(&targets, "siHJCTo");
}
END_TEST

START_TEST(what_swapper_made_is_everything)
{
	const struct task_targets targets = by_pid(0, true);

	check_matches(&targets, "SIHJCTO");
}
END_TEST

static const struct {
	const char *glob, *expected;
} globs[] = {
	{"sh", "siHjctO"},         {"s*", "SiHjctO"},      {"*", "SIHJCTO"},     {"?????", "sihjCto"},
	{"*/*", "Sihjcto"},        {"*wor*er", "sihjcTo"}, {"w*k*r", "sihjcTo"}, {"", "sihjcto"},
	{"swapper/0?", "sihjcto"}, {"**i*t", "sIhjcto"},   {"S*", "sihjcto"},
};

START_TEST(names_match_by_wildcards)
{
	const struct task_targets targets = by_comm(globs[_i].glob, false);

	check_matches(&targets, globs[_i].expected);
}
END_TEST

START_TEST(page_tables_are_those_of_the_vcpu)
{
	struct task_targets targets = {.n = 1, .targets = {{.kind = TASK_TARGET_TABLES, .tables = regs.cr3 | 0x123}}};
	const struct task_view view = {NULL, NULL, &regs};

	check_matches(&targets, "SIHJCTO");
	ck_assert(task_targets_match(&targets, &family, &view, NULL));
	regs.cr3 |= UINT64_C(1) << 63 | 7;
	ck_assert(task_targets_match(&targets, &family, &view, NULL));
	targets.targets[0].tables += 0x1000;
	ck_assert(!task_targets_match(&targets, &family, &view, NULL));
	targets.descendants = true;
	ck_assert(!task_targets_match(&targets, &family, &view, NULL));
	regs.cr3 &= 0xfff000;
	check_matches(&targets, "sihjcto"); /* no ancestor is taken for one because of the vCPU's tables */
}
END_TEST

START_TEST(any_of_several_will_do)
{
	struct task_targets targets = by_pid(60, false);

	targets.targets[targets.n++] = by_comm("worker", false).targets[0];
	check_matches(&targets, "sihJcTo");
	ck_assert(!task_target_equal(&targets.targets[0], &targets.targets[1]));
	ck_assert(task_target_equal(&targets.targets[0], &by_pid(60, true).targets[0]));
}
END_TEST

/* A job without its shell becomes init's child; a new name is no new task. */
START_TEST(what_was_meant_once_stays_meant)
{
	const struct task_targets targets = by_comm("sh", true);

	check_matches(&targets, "siHJCTO");
	task_make(JOB, 60, 60, "renamed", INIT);
	task_make(SHELL, 50, 50, "exec", INIT);
	check_matches(&targets, "siHJCTO");
	family = (struct task_family){0};
	check_matches(&targets, "sihjctO");
}
END_TEST

START_TEST(parents_that_lead_nowhere_end_the_search)
{
	const struct task_targets targets = by_pid(4711, true);

	task_make(JOB, 60, 60, "job", CHILD); /* a circle */
	check_matches(&targets, "sihjcto");
	fake_write(&fake, TASKS_GPA + SHELL * 0x1000 + layout.real_parent, 0x1000);
	check_matches(&targets, "sihjcto");
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("task_match");
	TCase *tc = tcase_create("task_match");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_process_is_meant_with_its_threads);
	tcase_add_test(tc, descendants_are_meant);
	tcase_add_test(tc, what_swapper_made_is_everything);
	tcase_add_loop_test(tc, names_match_by_wildcards, 0, G_N_ELEMENTS(globs));
	tcase_add_test(tc, page_tables_are_those_of_the_vcpu);
	tcase_add_test(tc, any_of_several_will_do);
	tcase_add_test(tc, what_was_meant_once_stays_meant);
	tcase_add_test(tc, parents_that_lead_nowhere_end_the_search);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
