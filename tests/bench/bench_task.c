// SPDX-License-Identifier: BSD-2-Clause
/* Every structure is in a page of its own, so that each needs a page walk, as it does where a kernel has run for long.
 */
#include "bench_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake_guest_memory.h"
#include "linux/kernel.h"
#include "stream/cgroup_namer.h"

#define AREA UINT64_C(0xffff888000040000)
#define AREA_GPA UINT64_C(0x40000)
#define PAGES 8u
#define TASK (AREA + 0x1000) /* of three pages, as a task_struct has */
#define SET (AREA + 0x4000)
#define GROUP (AREA + 0x5000)
#define NODE (AREA + 0x6000)
#define TURNS 20000u

static const struct task_layout tasks = {
	.this_cpu_off = 0x10,
	.current_task = 0x20,
	.pid = 0x900,
	.tgid = 0x904,
	.comm = 0x1100,
	.start_time = 0x1000,
	.mm = 0x800,
};
static const struct cgroup_layout cgroups = {
	.task_cgroups = 0x2000,
	.set_default = 0x100,
	.node = 0x100,
	.node_id = 0x60,
	.node_name = 0x10,
	.node_parent = 0x8,
};

static struct fake_guest fake;
static struct guest_regs regs;
static struct announcer announcer;
static struct kernel_layout kernel;
static struct cgroup_namer namer;

static void put(uint64_t gva, uint64_t value)
{
	fake_write(&fake, gva - AREA + AREA_GPA, value);
}

void bench_task_open(void)
{
	struct ring *ring = ring_new(65536, NULL);

	if (!ring)
		exit(EXIT_FAILURE);
	fake_guest_init(&fake);
	regs = (struct guest_regs){.gs_base = AREA, .cr3 = fake_table_new(&fake), .valid = true};
	for (unsigned i = 0; i < PAGES; i++)
		fake_map(&fake, regs.cr3, 4, AREA + i * 4096, AREA_GPA + i * 4096, 1);
	put(AREA + tasks.this_cpu_off, AREA);
	put(AREA + tasks.current_task, TASK);
	put(TASK + tasks.pid, UINT64_C(0x700000007));
	put(TASK + cgroups.task_cgroups, SET);
	put(SET + cgroups.set_default, GROUP);
	put(GROUP + cgroups.node, NODE);
	put(NODE + cgroups.node_id, 1);
	announcer.ring = ring;
	kernel = (struct kernel_layout){.has_tasks = true, .has_cgroups = true, .tasks = tasks, .cgroups = cgroups};
	kernel_layout_settle(&kernel);
	cgroup_namer_init(&namer, &kernel.os, &announcer);
}

double bench_task_ns(bool with_cgroup)
{
	const struct record_id id = {.pid = 7, .tid = 7};
	struct task_cpu cpu = {0};
	struct timespec start, end;

	task_cpu_note(&cpu, &regs);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	for (unsigned i = 0; i < TURNS; i++) {
		struct page_walk walk;
		struct task task;

		if (task_read(&tasks, &cpu, &fake.guest, &regs, &walk, &task) && task.pid == 7 &&
		    (!with_cgroup || cgroup_namer_task(&namer, &walk, &task, &id) == 1))
			continue;
		fprintf(stderr, "bench_sample: a task was not read\n");
		exit(EXIT_FAILURE);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / TURNS;
}
