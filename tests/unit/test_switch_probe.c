// SPDX-License-Identifier: BSD-2-Clause
/* Context switches: the tasks that __switch_to is called with, as the guest's memory has them. */
#include "fake_guest_memory.h"
#include "linux/kernel.h"
#include "run_suite.h"
#include "sample/session_config.h"
#include "sample/switch_probe.h"

#define TASKS UINT64_C(0xffff888000040000)
#define TASKS_GPA UINT64_C(0x40000)
#define PER_CPU (TASKS + 0x800) /* begins with its own address */
#define SWITCH_TO UINT64_C(0xffffffff81001000)
#define SET_COMM UINT64_C(0xffffffff81002000)
#define NAME (TASKS + 0xe00) /* that a task is given */

GQuark session_error_quark(void)
{
	return g_quark_from_static_string("session-error");
}

static struct fake_guest fake;
static struct kernel_layout kernel;
static struct guest_breakpoint *placed, *naming;
static bool none_left;
static struct guest_regs regs;
static unsigned switches;
static struct task previous, next;
static bool knows_previous, knows_next;

static bool breakpoint_add(struct guest *guest, struct guest_breakpoint *breakpoint, GError **error G_GNUC_UNUSED)
{
	ck_assert_ptr_eq(guest, &fake.guest);
	if (none_left)
		return false;
	*(breakpoint->at.value == SET_COMM ? &naming : &placed) = breakpoint;
	return true;
}

static void breakpoint_remove(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint)
{
	struct guest_breakpoint **of = breakpoint->at.value == SET_COMM ? &naming : &placed;

	ck_assert_ptr_eq(breakpoint, *of);
	*of = NULL;
}

static const struct guest_debug_ops debug_ops = {.breakpoint_add = breakpoint_add,
                                                 .breakpoint_remove = breakpoint_remove};

static void on_switch(struct switch_probe *probe G_GNUC_UNUSED, unsigned vcpu, const struct task_view *view,
                      const struct task *from, const struct task *to)
{
	ck_assert_uint_eq(vcpu, 1);
	ck_assert_ptr_nonnull(view->walk);
	knows_previous = from != NULL;
	knows_next = to != NULL;
	if (from)
		previous = *from;
	if (to)
		next = *to;
	switches++;
}

static struct switch_probe probe = {.switched = on_switch};

static void setup(void)
{
	fake_guest_init(&fake);
	uint64_t root = fake_table_new(&fake);

	fake_map(&fake, root, 4, TASKS, TASKS_GPA, 1);
	fake_write(&fake, TASKS_GPA + PER_CPU - TASKS, PER_CPU);
	fake.guest.kind = "fake";
	fake.guest.debug = &debug_ops;
	regs = (struct guest_regs){.rip = SWITCH_TO, .cr3 = root, .gs_base = PER_CPU, .valid = true};
	kernel = (struct kernel_layout){
		.has_tasks = true,
		.switch_to = {SWITCH_TO},
		.set_comm = {SET_COMM},
		.tasks = {.current_task = 8, .pid = 4, .tgid = 0, .start_time = 0x10, .comm = 0x20, .mm = 0x40},
	};
	switches = 0;
	none_left = false;
	kernel_layout_settle(&kernel);
}

/* The address of task number i. */
static uint64_t task_make(unsigned i, uint32_t pid, uint32_t tid, const char *comm)
{
	uint8_t *at = fake.ram + TASKS_GPA + i * 512;

	memcpy(at, &pid, sizeof(pid));
	memcpy(at + 4, &tid, sizeof(tid));
	g_strlcpy((char *)at + 0x20, comm, TASK_COMM_BYTES);
	return TASKS + i * 512;
}

static void call_switch_to(uint64_t from, uint64_t to)
{
	const struct guest_gprs gprs = {.rdi = from, .rsi = to};

	placed->hit(placed, 1, &regs, &gprs);
}

START_TEST(its_arguments_are_the_tasks)
{
	uint64_t shell = task_make(0, 7, 7, "sh"), thread = task_make(1, 9, 10, "worker");

	ck_assert(switch_probe_add(&probe, &fake.guest, &kernel.os, "a test", NULL));
	ck_assert_uint_eq(placed->at.value, SWITCH_TO);
	ck_assert_str_eq(placed->what, "a test");
	call_switch_to(shell, thread);
	ck_assert_uint_eq(switches, 1);
	ck_assert(knows_previous && knows_next);
	ck_assert_uint_eq(previous.tid, 7);
	ck_assert_str_eq(previous.comm, "sh");
	ck_assert_uint_eq(next.pid, 9);
	ck_assert_uint_eq(next.tid, 10);
	ck_assert_str_eq(next.comm, "worker");
	switch_probe_remove(&probe);
	ck_assert_ptr_null(placed);
}
END_TEST

START_TEST(what_cannot_be_read_is_not_known)
{
	uint64_t shell = task_make(0, 7, 7, "sh");

	ck_assert(switch_probe_add(&probe, &fake.guest, &kernel.os, "a test", NULL));
	call_switch_to(shell, TASKS + 4096);
	ck_assert(knows_previous && !knows_next);
	call_switch_to(0x1000, shell); /* no kernel's address */
	ck_assert(!knows_previous && knows_next);
	ck_assert_uint_eq(next.tid, 7);
	ck_assert_uint_eq(switches, 2);
	switch_probe_remove(&probe);
}
END_TEST

static void call_set_comm(uint64_t task, const char *name)
{
	const struct guest_gprs gprs = {.rdi = task, .rsi = NAME};

	g_strlcpy((char *)fake.ram + TASKS_GPA + NAME - TASKS, name, 64);
	naming->hit(naming, 1, &regs, &gprs);
}

START_TEST(a_name_is_a_switch_to_oneself)
{
	uint64_t shell = task_make(0, 7, 7, "sh"), thread = task_make(1, 9, 10, "worker");

	fake_write(&fake, TASKS_GPA + PER_CPU - TASKS + 8, shell);
	ck_assert(switch_probe_add(&probe, &fake.guest, &kernel.os, "a test", NULL));
	ck_assert_ptr_null(naming); /* unless it is wanted */
	switch_probe_see_names(&probe);
	switch_probe_see_names(&probe);
	ck_assert_str_eq(naming->what, "a test");
	call_set_comm(shell, "a-program-with-a-long-name");
	ck_assert_uint_eq(switches, 1);
	ck_assert_uint_eq(previous.tid, 7);
	ck_assert_str_eq(previous.comm, "sh");
	ck_assert_uint_eq(next.tid, 7);
	ck_assert_str_eq(next.comm, "a-program-with-");
	/* Another thread's name, and what cannot be read. */
	call_set_comm(thread, "other");
	naming->hit(naming, 1, &regs, &(struct guest_gprs){.rdi = shell, .rsi = TASKS + 4096});
	ck_assert_uint_eq(switches, 1);
	switch_probe_remove(&probe);
	ck_assert_ptr_null(naming);
	ck_assert_ptr_null(placed);
}
END_TEST

START_TEST(names_are_no_need)
{
	ck_assert(switch_probe_add(&probe, &fake.guest, &kernel.os, "a test", NULL));
	none_left = true;
	switch_probe_see_names(&probe);
	ck_assert_ptr_null(naming);
	kernel.set_comm.value = 0;
	none_left = false;
	switch_probe_see_names(&probe);
	ck_assert_ptr_null(naming);
	switch_probe_remove(&probe);
	ck_assert_ptr_null(placed);
}
END_TEST

static void refused(const char *why)
{
	g_autoptr(GError) error = NULL;

	ck_assert(!switch_probe_add(&probe, &fake.guest, &kernel.os, "a test", &error));
	ck_assert(g_error_matches(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED));
	ck_assert_msg(strstr(error->message, "for a test: "), "%s", error->message);
	ck_assert_msg(strstr(error->message, why), "%s", error->message);
	ck_assert_ptr_null(placed);
}

START_TEST(what_is_missing_is_said)
{
	kernel.switch_to.value = 0;
	kernel_layout_settle(&kernel);
	refused("the kernel has no symbol __switch_to");
	kernel.has_tasks = false;
	kernel.os.why[OS_TASKS] = "it has no types";
	kernel_layout_settle(&kernel);
	refused("it has no types");
	fake.guest.debug = NULL;
	refused("a guest of kind fake takes no breakpoints");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("switch_probe");
	TCase *tests = tcase_create("switch_probe");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, its_arguments_are_the_tasks);
	tcase_add_test(tests, what_cannot_be_read_is_not_known);
	tcase_add_test(tests, a_name_is_a_switch_to_oneself);
	tcase_add_test(tests, names_are_no_need);
	tcase_add_test(tests, what_is_missing_is_said);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
