// SPDX-License-Identifier: BSD-2-Clause
/* The programs of the demonstration guest, by the symbols of its image, in memory laid out by hand. */
#include <check.h>
#include <stdlib.h>
#include <vprof/demo.h>

#include "demo_os/os_demo.h"
#include "fake_guest_memory.h"
#include "run_suite.h"

#define ROOT UINT64_C(0x10000)
#define PROGRAMS_GPA UINT64_C(0x40000)

static struct fake_guest fake;
static struct guest_regs regs;
static struct page_walk walk;
static const struct os_kernel *kernel;
static uint64_t programs, kernel_stacks, user_stacks;

static uint64_t symbol_of(const struct symtab *symtab, const char *name)
{
	const uint64_t address = symtab_address(symtab, name);

	ck_assert_msg(address != 0, "no symbol %s", name);
	return address;
}

static void program_put(unsigned vcpu, struct vprof_demo_program program)
{
	const uint64_t at = PROGRAMS_GPA + programs % 4096 + vcpu * sizeof(program);

	memcpy(fake.ram + at, &program, sizeof(program));
}

static void setup(void)
{
	g_autofree char *path = g_build_filename(getenv("VPROF_BIN"), "demo-guest.elf", NULL);
	struct image *image = image_open(path, NULL);

	ck_assert_ptr_nonnull(image);
	ck_assert(os_demo.recognises(image));
	struct symtab *symtab = symtab_load(image, NULL);

	symtab_index_names(symtab);
	programs = symbol_of(symtab, "demo_programs");
	kernel_stacks = symbol_of(symtab, "kernel_stacks");
	user_stacks = symbol_of(symtab, "user_stacks");
	symtab_free(symtab);
	kernel = os_demo.load(image);
	image_free(image);
	fake_guest_init(&fake);
	fake.next_table = 0x20000;
	fake_map(&fake, ROOT, 4, programs & ~UINT64_C(4095), PROGRAMS_GPA, 1);
	fake_map(&fake, ROOT, 4, (programs & ~UINT64_C(4095)) + 4096, PROGRAMS_GPA + 4096, 1);
	regs = (struct guest_regs){.cr3 = ROOT, .valid = true};
	program_put(0, (struct vprof_demo_program){.runs = 1, .id = 1, .name = "demo"});
	program_put(1, (struct vprof_demo_program){.runs = 1, .id = 2, .name = "de\x1b[mo"});
	program_put(2, (struct vprof_demo_program){.runs = 0, .id = 3, .name = "demo"});
}

static void teardown(void)
{
	os_kernel_free((struct os_kernel *)kernel);
}

static bool read_by(uint64_t sp, struct task *task)
{
	regs.rsp = sp;
	return kernel->tasks->read(kernel, &(struct task_cpu){0}, &fake.guest, &regs, &walk, task);
}

START_TEST(the_stack_tells_which_program_runs)
{
	struct task task;

	ck_assert(read_by(user_stacks + 100, &task));
	ck_assert_uint_eq(task.pid, 1);
	ck_assert_uint_eq(task.tid, 1);
	ck_assert_str_eq(task.comm, "demo");
	ck_assert(read_by(kernel_stacks + VPROF_DEMO_STACK_BYTES, &task)); /* an empty one */
	ck_assert_uint_eq(task.tid, 1);
	ck_assert(read_by(kernel_stacks + VPROF_DEMO_STACK_BYTES + 1, &task));
	ck_assert_uint_eq(task.tid, 2);
	ck_assert_str_eq(task.comm, "de?[mo");
	ck_assert(read_by(user_stacks + 3 * VPROF_DEMO_STACK_BYTES - 8, &task));
	ck_assert_uint_eq(task.tid, 0);
	ck_assert_uint_eq(task.mm, 0);
	ck_assert(!read_by(kernel_stacks, &task));
	ck_assert(!read_by(user_stacks + VPROF_DEMO_VCPUS_MAX * VPROF_DEMO_STACK_BYTES + 1, &task));
	ck_assert(!read_by(0, &task));
}
END_TEST

START_TEST(what_contradicts_itself_is_no_program)
{
	struct task task;

	program_put(0, (struct vprof_demo_program){.runs = 1, .id = 2, .name = "demo"});
	ck_assert(!read_by(user_stacks + 8, &task));
	program_put(0, (struct vprof_demo_program){.runs = 1, .id = 1, .name = "sixteen letters!"});
	ck_assert(!read_by(user_stacks + 8, &task));
	regs.cr3 = 0;
	ck_assert(!read_by(user_stacks + VPROF_DEMO_STACK_BYTES + 8, &task));
}
END_TEST

START_TEST(a_list_has_those_that_run)
{
	struct task_list list;
	struct task task;

	ck_assert(read_by(user_stacks + 8, &task));
	ck_assert(kernel->list->is_there(kernel, &walk));
	kernel->list->read(kernel, &walk, &list);
	ck_assert_int_eq(list.end, TASK_LIST_WHOLE);
	ck_assert_uint_eq(list.tasks->len, 2);
	const struct listed_task *second = &g_array_index(list.tasks, struct listed_task, 1);

	ck_assert_uint_eq(second->task.tid, 2);
	ck_assert_uint_eq(second->cpu, 1);
	ck_assert(second->on_cpu);
	task_list_clear(&list);

	ck_assert(!kernel->tasks->has_ended(kernel, &walk, &task));
	program_put(0, (struct vprof_demo_program){.runs = 0, .id = 1, .name = "demo"});
	ck_assert(kernel->tasks->has_ended(kernel, &walk, &task));
	program_put(1, (struct vprof_demo_program){.runs = 1, .id = 1, .name = "demo"});
	kernel->list->read(kernel, &walk, &list);
	ck_assert_int_eq(list.end, TASK_LIST_BROKEN);
	ck_assert_uint_eq(list.tasks->len, 0);
	task_list_clear(&list);
	ck_assert(
		!kernel->tasks->read_at(kernel, &(struct task_cpu){0}, &fake.guest, &regs, programs + 1, &walk, &task));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("os_demo");
	TCase *tc = tcase_create("os_demo");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_stack_tells_which_program_runs);
	tcase_add_test(tc, what_contradicts_itself_is_no_program);
	tcase_add_test(tc, a_list_has_those_that_run);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
