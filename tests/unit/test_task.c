// SPDX-License-Identifier: BSD-2-Clause
/* The task of a vCPU in memory laid out by hand, where a layout comes from, and which names are remembered. */
#include <check.h>

#include "fake_guest_memory.h"
#include "guest/task_cache.h"
#include "linux/kernel.h"
#include "linux_image.h"
#include "run_suite.h"

#define AREA UINT64_C(0xffff888000040000) /* one page: the per-CPU area */
#define AREA_GPA UINT64_C(0x40000)
#define TASK UINT64_C(0xffff888000050ff8) /* two pages, which it crosses */
#define TASK_GPA UINT64_C(0x50000)
#define USER_GS UINT64_C(0x00007f0000001000)
#define USER_TABLES UINT64_C(0x1000) /* CR3 bit of the user's half */

static const struct task_layout layout = {
	.this_cpu_off = 0x168,
	.current_task = 0x200,
	.pid = 4,
	.tgid = 0,
	.comm = 0x20,
	.start_time = 0x10,
	.mm = 0x40,
	.real_parent = 0x48,
	.exit_state = 0x50,
};

static struct fake_guest fake;
static struct guest_regs regs;
static struct task_cpu cpu;
static struct page_walk walk;

static void task_bytes(uint64_t offset, const void *bytes, size_t n)
{
	memcpy(fake.ram + TASK_GPA + (TASK & 0xfff) + offset, bytes, n);
}

static void task_ids(uint32_t pid, uint32_t tid)
{
	task_bytes(layout.tgid, &pid, sizeof(pid));
	task_bytes(layout.pid, &tid, sizeof(tid));
}

/* A kernel that runs thread 43 of process 42. */
static void setup(void)
{
	uint64_t start_time = 12345;

	fake_guest_init(&fake);
	fake_table_new(&fake); /* the root is at an even page, as with page table isolation */
	fake.next_table = 0x12000;
	uint64_t root = fake_table_new(&fake);
	fake_table_new(&fake); /* the user's tables: empty */
	fake_map(&fake, root, 4, AREA, AREA_GPA, 1);
	fake_map(&fake, root, 4, TASK & ~UINT64_C(0xfff), TASK_GPA, 1);
	fake_map(&fake, root, 4, (TASK & ~UINT64_C(0xfff)) + 0x1000, TASK_GPA + 0x1000, 1);
	fake_write(&fake, AREA_GPA + layout.this_cpu_off, AREA);
	fake_write(&fake, AREA_GPA + layout.current_task, TASK);
	task_ids(42, 43);
	task_bytes(layout.start_time, &start_time, sizeof(start_time));
	task_bytes(layout.comm, "worker/0:1", sizeof("worker/0:1"));
	regs = (struct guest_regs){.cr3 = root, .gs_base = AREA, .cpl = 0, .valid = true};
	cpu = (struct task_cpu){0};
	task_cpu_note(&cpu, &regs);
}

static bool read_task(struct task *task)
{
	return task_read(&layout, &cpu, &fake.guest, &regs, &walk, task);
}

static void check_worker(void)
{
	struct task task;

	ck_assert(read_task(&task));
	ck_assert_uint_eq(task.address, TASK);
	ck_assert_uint_eq(task.start_time, 12345);
	ck_assert_uint_eq(task.pid, 42);
	ck_assert_uint_eq(task.tid, 43);
	ck_assert_str_eq(task.comm, "worker/0:1");
}

static void check_unknown(void)
{
	struct task task = {.pid = 7};

	ck_assert(!read_task(&task));
	ck_assert_uint_eq(task.pid, 7);
}

START_TEST(in_the_kernel)
{
	fake.reads = 0;
	check_worker();
	/* 4 tables and the bytes, for 3 pages; two fields cross pages or share one with others. */
	ck_assert_uint_le(fake.reads, 3 * 4 + 9);
}
END_TEST

START_TEST(in_user_mode)
{
	regs.cpl = 3;
	regs.gs_base = USER_GS;
	task_cpu_note(&cpu, &regs);
	check_worker();
}
END_TEST

/* Behind an entry, before swapgs, the kernel runs with user space's GS base. */
START_TEST(at_the_kernels_entry)
{
	regs.gs_base = USER_GS;
	task_cpu_note(&cpu, &regs);
	check_worker();
}
END_TEST

START_TEST(on_the_users_page_tables)
{
	regs.cpl = 3;
	regs.cr3 |= USER_TABLES | 0x801; /* and a PCID */
	check_worker();
}
END_TEST

START_TEST(a_vcpu_never_seen_in_the_kernel_is_unknown)
{
	cpu = (struct task_cpu){0};
	regs.cpl = 3;
	task_cpu_note(&cpu, &regs);
	check_unknown();
}
END_TEST

START_TEST(an_area_that_is_none_is_unknown)
{
	fake_write(&fake, AREA_GPA + layout.this_cpu_off, AREA + 8);
	check_unknown();
}
END_TEST

START_TEST(a_task_in_the_lower_half_is_unknown)
{
	fake_write(&fake, AREA_GPA + layout.current_task, 0x1000);
	check_unknown();
}
END_TEST

START_TEST(a_task_that_is_not_mapped_is_unknown)
{
	fake_write(&fake, AREA_GPA + layout.current_task, TASK + 0x100000);
	check_unknown();
}
END_TEST

START_TEST(impossible_pids_are_unknown)
{
	static const uint32_t pids[][2] = {{0, 1}, {1, 0}, {1u << 23, 1}, {1, UINT32_MAX}};

	for (size_t i = 0; i < G_N_ELEMENTS(pids); i++) {
		task_ids(pids[i][0], pids[i][1]);
		check_unknown();
	}
	task_ids(0, 0);
	struct task task;

	ck_assert(read_task(&task));
	ck_assert_uint_eq(task.tid, 0);
}
END_TEST

START_TEST(names_end_and_are_clean)
{
	struct task task;

	task_bytes(layout.comm, "0123456789abcdef", 16);
	check_unknown();
	task_bytes(layout.comm, "a\n\033[31m\177b\0cdefg", 16);
	ck_assert(read_task(&task));
	ck_assert_str_eq(task.comm, "a??[31m?b");
	for (size_t i = strlen(task.comm); i < sizeof(task.comm); i++)
		ck_assert_int_eq(task.comm[i], '\0');
}
END_TEST

/* Layouts. */

static const struct {
	const char *per_cpu;
	uint64_t current_task, interrupt_stack;
} kernels[] = {{"current_task", 0x20, 0x28}, {"pcpu_hot", 0x20 + 24, 0x20 + 32}};

START_TEST(a_layout_comes_from_symbols_and_types)
{
	struct image *image =
		linux_image_make(&(struct linux_image){.per_cpu = kernels[_i].per_cpu, .node_parent = "parent"});
	struct kernel_layout *loaded = kernel_layout_load(image);

	ck_assert_msg(loaded->has_tasks, "%s", loaded->os.why[OS_TASKS]);
	ck_assert_ptr_null(loaded->os.why[OS_TASKS]);
	ck_assert_uint_eq(loaded->tasks.this_cpu_off, 0x18);
	ck_assert_uint_eq(loaded->tasks.current_task, kernels[_i].current_task);
	ck_assert_uint_eq(loaded->os.places.interrupt_stack, kernels[_i].interrupt_stack);
	ck_assert_uint_eq(loaded->tasks.pid, 100);
	ck_assert_uint_eq(loaded->tasks.tgid, 104);
	ck_assert_uint_eq(loaded->tasks.start_time, 200);
	ck_assert_uint_eq(loaded->tasks.comm, 280);
	ck_assert_uint_eq(loaded->tasks.mm, 304);
	ck_assert_uint_eq(loaded->tasks.real_parent, 312);
	ck_assert_uint_eq(loaded->tasks.exit_state, 320);
	ck_assert_msg(loaded->has_cgroups, "%s", loaded->os.why[OS_GROUPS]);
	ck_assert(!loaded->has_mappings);
	kernel_layout_free(loaded);
	image_free(image);
}
END_TEST

START_TEST(a_kernel_that_does_not_say_has_no_tasks)
{
	static const struct {
		const char *per_cpu;
		bool with_btf;
		const char *why;
		uint64_t interrupt_stack; /* which needs no tasks */
	} refused[] = {{"current_task", false, "neither BTF nor debug information", 0x28},
	               {"pcpu_hot", false, "neither BTF nor debug information", 0},
	               {"something", true, "no symbols this_cpu_off and current_task or pcpu_hot", 0}};

	for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
		struct image *image = linux_image_make(
			&(struct linux_image){.per_cpu = refused[i].per_cpu, .no_btf = !refused[i].with_btf});
		struct kernel_layout *loaded = kernel_layout_load(image);

		ck_assert(!loaded->has_tasks);
		ck_assert_ptr_nonnull(strstr(loaded->os.why[OS_TASKS], refused[i].why));
		ck_assert_uint_eq(loaded->os.places.interrupt_stack, refused[i].interrupt_stack);
		kernel_layout_free(loaded);
		image_free(image);
	}
}
END_TEST

/* Its pgd, an address of the kernel's, is where the page tables of CR3 are. */
START_TEST(a_process_has_its_own_tables)
{
	static const struct task_layout pgds = {.mm_pgd = 0x40};
	const uint64_t pgd = AREA + 0x80;
	struct task task = {.mm = TASK};
	struct page_walk of_process;

	task_bytes(pgds.mm_pgd, &pgd, sizeof(pgd));
	page_walk_init_regs(&walk, &fake.guest, &regs);
	ck_assert(task_walk_open(&pgds, &walk, &task, &of_process));
	ck_assert_uint_eq(of_process.tables.cr3, AREA_GPA + 0x80);
	task.mm = 0;
	ck_assert(!task_walk_open(&pgds, &walk, &task, &of_process));
	ck_assert_uint_eq(of_process.tables.cr3, regs.cr3);
}
END_TEST

START_TEST(a_parent_is_read_and_an_end_is_seen)
{
	struct task task;
	struct task_parent parent;
	uint32_t zombie = 0x20;
	uint64_t other = 777, self = TASK;

	ck_assert(read_task(&task));
	ck_assert(!task_parent_read(&layout, &walk, &task, &parent));
	task_bytes(layout.real_parent, &self, sizeof(self));
	ck_assert(task_parent_read(&layout, &walk, &task, &parent));
	ck_assert_uint_eq(parent.pid, 42);
	ck_assert_uint_eq(parent.tid, 43);

	ck_assert(!task_has_ended(&layout, &walk, &task));
	task_bytes(layout.exit_state, &zombie, sizeof(zombie));
	ck_assert(task_has_ended(&layout, &walk, &task));
	task_bytes(layout.exit_state, &(uint32_t){0}, sizeof(zombie));
	task_bytes(layout.start_time, &other, sizeof(other));
	ck_assert(task_has_ended(&layout, &walk, &task));
	task.address += 0x100000;
	ck_assert(task_has_ended(&layout, &walk, &task));
}
END_TEST

/* The cache. */

START_TEST(a_task_is_remembered_as_it_was_last)
{
	struct task_cache cache = {0};
	struct task task = {.address = TASK, .start_time = 5, .pid = 42, .tid = 42, .comm = "sh"};

	ck_assert_ptr_null(task_cache_find(&cache, &task));
	task_cache_put(&cache, &task)->announced = true;
	g_strlcpy(task.comm, "ls", sizeof(task.comm)); /* exec */
	ck_assert_str_eq(task_cache_find(&cache, &task)->task.comm, "sh");
	task_cache_put(&cache, &task);
	ck_assert_str_eq(task_cache_find(&cache, &task)->task.comm, "ls");
	ck_assert(task_cache_find(&cache, &task)->announced);
	task.start_time = 6; /* another one, where the first had its task_struct */
	ck_assert_ptr_null(task_cache_find(&cache, &task));
}
END_TEST

static struct task numbered(unsigned i)
{
	return (struct task){.address = TASK + i * UINT64_C(0x2600), .start_time = i, .pid = i, .tid = i};
}

START_TEST(a_full_cache_forgets_the_oldest)
{
	static struct task_cache cache;
	const unsigned n = 100 * TASK_CACHE_ENTRIES;
	unsigned remembered = 0, walked = 0;

	for (unsigned i = 1; i <= n; i++) {
		struct task task = numbered(i);

		task_cache_put(&cache, &task);
		ck_assert_ptr_nonnull(task_cache_find(&cache, &task));
	}
	for (unsigned i = 1; i <= n; i++) {
		struct task task = numbered(i);

		remembered += task_cache_find(&cache, &task) != NULL;
	}
	ck_assert_uint_eq(remembered, TASK_CACHE_ENTRIES);
	for (unsigned i = 0; i < TASK_CACHE_ENTRIES; i++)
		walked += task_cache_next(&cache) != NULL;
	ck_assert_uint_eq(walked, TASK_CACHE_ENTRIES);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task");
	TCase *tests = tcase_create("task");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, in_the_kernel);
	tcase_add_test(tests, in_user_mode);
	tcase_add_test(tests, at_the_kernels_entry);
	tcase_add_test(tests, on_the_users_page_tables);
	tcase_add_test(tests, a_vcpu_never_seen_in_the_kernel_is_unknown);
	tcase_add_test(tests, an_area_that_is_none_is_unknown);
	tcase_add_test(tests, a_task_in_the_lower_half_is_unknown);
	tcase_add_test(tests, a_task_that_is_not_mapped_is_unknown);
	tcase_add_test(tests, impossible_pids_are_unknown);
	tcase_add_test(tests, names_end_and_are_clean);
	tcase_add_loop_test(tests, a_layout_comes_from_symbols_and_types, 0, G_N_ELEMENTS(kernels));
	tcase_add_test(tests, a_kernel_that_does_not_say_has_no_tasks);
	tcase_add_test(tests, a_process_has_its_own_tables);
	tcase_add_test(tests, a_parent_is_read_and_an_end_is_seen);
	tcase_add_test(tests, a_task_is_remembered_as_it_was_last);
	tcase_add_test(tests, a_full_cache_forgets_the_oldest);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
