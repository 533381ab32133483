// SPDX-License-Identifier: BSD-2-Clause
/* The tasks of a kernel in memory laid out by hand, with task_structs of 256 bytes. */
#ifndef VPROF_TEST_SUPPORT_FAKE_TASKS_H
#define VPROF_TEST_SUPPORT_FAKE_TASKS_H

#include "fake_guest_memory.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/kernel.h"

#define FAKE_MEMORY UINT64_C(0xffff888000000000) /* maps the fake guest's RAM */
#define FAKE_INIT_TASK UINT64_C(0x20000)
#define FAKE_TASK(i) (UINT64_C(0x20000) + (i)*UINT64_C(0x100)) /* 1 and up; guest physical */
#define FAKE_SIGNAL(i) (UINT64_C(0x30000) + (i)*UINT64_C(0x100))
#define FAKE_STACK(i) (UINT64_C(0x40000) + (i)*UINT64_C(0x400)) /* where the saved stack pointer leads */
#define FAKE_WAITS UINT64_C(0xffffffff81000000)                 /* code of the scheduler, 4 KiB */
#define FAKE_CODE UINT64_C(0xffffffff81100000)
#define FAKE_FORK UINT64_C(0xffffffff81200000)

static const struct task_layout fake_task_layout = {
	.this_cpu_off = 0,
	.current_task = 8,
	.tgid = 0,
	.pid = 4,
	.exit_state = 0xc,
	.start_time = 0x10,
	.mm = 0x18,
	.comm = 0x20,
	.real_parent = 0x80,
};

static const struct task_list_layout fake_list_layout = {
	.init_task = FAKE_MEMORY + FAKE_INIT_TASK,
	.fork_return = FAKE_FORK,
	.waits = {FAKE_WAITS, FAKE_WAITS + 0x1000},
	.state = {8, 4},
	.tasks = 0x30,
	.thread_node = 0x40,
	.signal = 0x50,
	.on_cpu = {0x58, 4},
	.cpu = 0x5c,
	.runtime = 0x60,
	.voluntary = 0x68,
	.involuntary = 0x70,
	.stack_pointer = 0x78,
	.flags = 0x88,
	.queued = 0x90,
	.thread_head = 0,
	.bytes = 0xa0,
};

static inline void fake_number(struct fake_guest *fake, uint64_t gpa, uint32_t value)
{
	memcpy(fake->ram + gpa, &value, sizeof(value));
}

/* Links list heads, which are at these guest physical addresses, to a ring. */
static inline void fake_ring(struct fake_guest *fake, const uint64_t *heads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fake_write(fake, heads[i], FAKE_MEMORY + heads[(i + 1) % n]);
		fake_write(fake, heads[i] + 8, FAKE_MEMORY + heads[(i + n - 1) % n]);
	}
}

/*
 * Task i of the process with the first task `leader`, which sleeps; its pid is 100 + i. Two frames by frame pointers:
 * the scheduler's, and one at FAKE_CODE + 16 * i.
 */
static inline void fake_task(struct fake_guest *fake, unsigned i, unsigned leader)
{
	const uint64_t gpa = FAKE_TASK(i), stack = FAKE_STACK(i), frames = FAKE_MEMORY + stack + 0x80;
	char name[TASK_COMM_BYTES];

	fake_number(fake, gpa + fake_task_layout.tgid, 100 + leader);
	fake_number(fake, gpa + fake_task_layout.pid, 100 + i);
	fake_number(fake, gpa + fake_list_layout.state.at, 1);
	fake_write(fake, gpa + fake_task_layout.start_time, 1000 + i);
	g_snprintf(name, sizeof(name), "task%u", i);
	memcpy(fake->ram + gpa + fake_task_layout.comm, name, sizeof(name));
	fake_write(fake, gpa + fake_list_layout.signal, FAKE_MEMORY + FAKE_SIGNAL(leader));
	fake_write(fake, gpa + fake_list_layout.runtime, UINT64_C(1000000) * i);
	fake_write(fake, gpa + fake_list_layout.voluntary, 7);
	fake_write(fake, gpa + fake_list_layout.involuntary, i);
	fake_write(fake, gpa + fake_list_layout.stack_pointer, FAKE_MEMORY + stack);
	fake_write(fake, stack + 0x28, frames);            /* rbp */
	fake_write(fake, stack + 0x30, FAKE_WAITS + 0x10); /* where __switch_to_asm returns to */
	fake_write(fake, stack + 0x80, frames + 0x20);
	fake_write(fake, stack + 0x88, FAKE_CODE + UINT64_C(16) * i);
}

/* Processes 1 (with threads 2 and 3), 4 and 5; `walk` reads them. */
static inline void fake_tasks_init(struct fake_guest *fake, struct page_walk *walk)
{
	const uint64_t node = fake_list_layout.thread_node, tasks = fake_list_layout.tasks;

	fake_guest_init(fake);
	uint64_t cr3 = fake_table_new(fake);

	fake_map(fake, cr3, 4, FAKE_MEMORY, 0, 2);
	page_walk_init(walk, &fake->guest, cr3, false);
	for (unsigned i = 1; i <= 5; i++)
		fake_task(fake, i, i <= 3 ? 1 : i);
	fake_ring(
		fake,
		(uint64_t[]){FAKE_INIT_TASK + tasks, FAKE_TASK(1) + tasks, FAKE_TASK(4) + tasks, FAKE_TASK(5) + tasks},
		4);
	fake_ring(fake, (uint64_t[]){FAKE_SIGNAL(1), FAKE_TASK(1) + node, FAKE_TASK(2) + node, FAKE_TASK(3) + node}, 4);
	fake_ring(fake, (uint64_t[]){FAKE_SIGNAL(4), FAKE_TASK(4) + node}, 2);
	fake_ring(fake, (uint64_t[]){FAKE_SIGNAL(5), FAKE_TASK(5) + node}, 2);
}

#define FAKE_AREA UINT64_C(0x18000) /* of processor 0, which runs task 4 */
#define FAKE_IDLE_AREA UINT64_C(0x19000)
#define FAKE_IDLE_TASK UINT64_C(0x1a000)
#define FAKE_OFFSETS UINT64_C(0x1b000)
#define FAKE_APIC_ID 16u /* in an area */

static inline void fake_area(struct fake_guest *fake, uint64_t gpa, uint64_t task, uint32_t apic_id)
{
	fake_write(fake, gpa + fake_task_layout.this_cpu_off, FAKE_MEMORY + gpa);
	fake_write(fake, gpa + fake_task_layout.current_task, FAKE_MEMORY + task);
	fake_number(fake, gpa + FAKE_APIC_ID, apic_id);
}

/* Two processors, with the APIC ids 0 and 7, and the layout of a kernel that has them and the tasks. */
static inline void fake_processors_init(struct fake_guest *fake, struct kernel_layout *kernel)
{
	*kernel = (struct kernel_layout){.has_tasks = true,
	                                 .has_list = true,
	                                 .has_areas = true,
	                                 .tasks = fake_task_layout,
	                                 .list = fake_list_layout,
	                                 .areas = {.offsets = FAKE_MEMORY + FAKE_OFFSETS,
	                                           .this_cpu_off = fake_task_layout.this_cpu_off,
	                                           .current_task = fake_task_layout.current_task,
	                                           .apic_id = FAKE_APIC_ID,
	                                           .apic_id_bytes = 4}};
	fake_area(fake, FAKE_AREA, FAKE_TASK(4), 0);
	fake_area(fake, FAKE_IDLE_AREA, FAKE_IDLE_TASK, 7);
	fake_write(fake, FAKE_OFFSETS, FAKE_MEMORY + FAKE_AREA);
	fake_write(fake, FAKE_OFFSETS + 8, FAKE_MEMORY + FAKE_IDLE_AREA);
	memcpy(fake->ram + FAKE_IDLE_TASK + fake_task_layout.comm, "swapper/1", 10);
	fake_number(fake, FAKE_IDLE_TASK + fake_list_layout.cpu, 1);
}

#endif
