// SPDX-License-Identifier: BSD-2-Clause
/* Tasks in the memory of a guest without KVM, for one test program. */
#ifndef VPROF_TEST_SUPPORT_TASK_PAGES_H
#define VPROF_TEST_SUPPORT_TASK_PAGES_H

#include <glib.h>
#include <string.h>

#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/kernel.h"

#define TASKS UINT64_C(0xffff888000040000) /* pages of tasks, 512 bytes each */
#define TASKS_GPA UINT64_C(0x40000)

static struct kernel_layout kernel = {
	.has_tasks = true,
	.tasks = {.pid = 4,
                  .tgid = 0,
                  .start_time = 0x10,
                  .comm = 0x20,
                  .mm = 0x40,
                  .real_parent = 0x48,
                  .exit_state = 0x50,
                  .self_exec_id = 0x58},
};

static struct fake_guest fake;
static struct page_walk walk;

static void task_pages_init(unsigned pages)
{
	kernel_layout_settle(&kernel);
	fake_guest_init(&fake);
	uint64_t root = fake_table_new(&fake);

	for (unsigned i = 0; i < pages; i++)
		fake_map(&fake, root, 4, TASKS + i * 4096, TASKS_GPA + i * 4096, 1);
	page_walk_init(&walk, &fake.guest, root, false);
}

/* Task number i with that pid; its parent is task 0. */
static struct task task_make(unsigned i, uint32_t tid, const char *comm)
{
	struct task task = {.address = TASKS + i * 512, .start_time = 1000 + tid, .pid = tid, .tid = tid};
	uint8_t *at = fake.ram + TASKS_GPA + i * 512;
	uint64_t parent = TASKS;

	g_strlcpy(task.comm, comm, sizeof(task.comm));
	memcpy(at + kernel.tasks.tgid, &task.pid, sizeof(task.pid));
	memcpy(at + kernel.tasks.pid, &task.tid, sizeof(task.tid));
	memcpy(at + kernel.tasks.start_time, &task.start_time, sizeof(task.start_time));
	memcpy(at + kernel.tasks.real_parent, &parent, sizeof(parent));
	return task;
}

static void task_exit(unsigned i)
{
	fake.ram[TASKS_GPA + i * 512 + kernel.tasks.exit_state] = 0x10; /* EXIT_DEAD */
}

#endif
