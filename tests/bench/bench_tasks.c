// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looks at the tasks that wait (`--wall`), of a kernel in memory that the bench lays out: task_structs of 12 KiB in the
 * direct map, stacks in pages of their own as CONFIG_VMAP_STACK has them, and chains of FRAMES frames.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/record/ring_reader.h"
#include "linux/kernel.h"
#include "sample/session_priv.h"
#include "sample/session_wall.h"
#include "stream/ring.h"

#define DIRECT UINT64_C(0xffff888000000000)
#define STACKS UINT64_C(0xffffc90000000000)
#define WAITS UINT64_C(0xffffffff81000000) /* code of the scheduler, 4 KiB */
#define CODE UINT64_C(0xffffffff81100000)
#define RAM_BYTES (UINT64_C(1) << 30)
#define TABLES_GPA UINT64_C(0x100000)
#define TASKS_GPA UINT64_C(0x10000000)
#define TASK_BYTES UINT64_C(0x3000)
#define OFFSETS_GPA UINT64_C(0x2000) /* of the areas of processors, of which there is one */
#define AREA_GPA UINT64_C(0x3000)
#define SIGNALS_GPA UINT64_C(0x4000000)
#define STACKS_GPA UINT64_C(0x20000000)
#define STACK_BYTES UINT64_C(0x5000) /* with a page that is not mapped */
#define FRAMES 20u
#define SLICES 9
#define NS_PER_S UINT64_C(1000000000)

struct memory {
	struct guest guest; /* first */
	uint8_t *ram;
	uint64_t next_table;
};

/* As in Debian's kernel 6.12, within a few words. */
static const struct task_layout tasks = {
	.this_cpu_off = 0,
	.current_task = 8,
	.pid = 0x5a0,
	.tgid = 0x5a4,
	.exit_state = 0x530,
	.start_time = 0x6c0,
	.mm = 0x4f0,
	.comm = 0x788,
	.real_parent = 0x5b0,
};
static const struct task_list_layout list = {
	.init_task = DIRECT + TASKS_GPA,
	.waits = {WAITS, WAITS + 0x1000},
	.state = {0x18, 4},
	.flags = 0x2c,
	.on_cpu = {0x34, 4},
	.cpu = 0x14,
	.runtime = 0x110,
	.queued = 0x458,
	.tasks = 0x4a0,
	.thread_node = 0x658,
	.voluntary = 0x6b0,
	.involuntary = 0x6b8,
	.signal = 0x7d8,
	.stack_pointer = 0x1a98,
	.bytes = 0x1aa8,
	.n_spans = 3,
	.spans = {{0x14, 0x10c}, {0x458, 0x390}, {0x1a98, 0x10}},
};

static struct memory memory;
static struct kernel_layout kernel;
static struct sampler sampler;
static struct session session;
static struct ring *ring;
static struct ring_reader *reader;
static uint64_t cr3;
static unsigned n_tasks;

static bool memory_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	(void)guest;
	if (from.value >= RAM_BYTES || bytes > RAM_BYTES - from.value)
		return false;
	memcpy(to, memory.ram + from.value, bytes);
	return true;
}

static void vcpus_look(struct guest *guest, void (*take)(void *data, const struct guest_vcpu *vcpu), void *data)
{
	(void)guest;
	take(data, &(struct guest_vcpu){.regs = {.cr3 = cr3}});
}

static const struct guest_ops ops = {.memory_read = memory_read, .vcpus_look = vcpus_look};

static void word(uint64_t gpa, uint64_t value)
{
	memcpy(memory.ram + gpa, &value, sizeof(value));
}

static uint64_t word_at(uint64_t gpa)
{
	uint64_t value;

	memcpy(&value, memory.ram + gpa, sizeof(value));
	return value;
}

static void number(uint64_t gpa, uint32_t value)
{
	memcpy(memory.ram + gpa, &value, sizeof(value));
}

static uint64_t table_new(void)
{
	memory.next_table += 4096;
	return memory.next_table - 4096;
}

static void map(uint64_t gva, uint64_t gpa, unsigned leaf_level)
{
	uint64_t table = cr3, at = 0;

	for (unsigned level = 4; level >= leaf_level; level--) {
		at = table + (gva >> (12 + 9 * (level - 1)) & 511) * 8;
		if (level == leaf_level)
			break;
		if (word_at(at) == 0)
			word(at, table_new() | 7);
		table = word_at(at) & UINT64_C(0x000ffffffffff000);
	}
	word(at, gpa | 7 | (leaf_level > 1 ? 0x80 : 0));
}

static uint64_t task_gpa(unsigned i)
{
	return TASKS_GPA + i * TASK_BYTES;
}

/* A list_head in task i, behind that of the task before. */
static void link_tasks(unsigned i)
{
	const unsigned next = i < n_tasks ? i + 1 : 0, before = i > 0 ? i - 1 : n_tasks;

	word(task_gpa(i) + list.tasks, DIRECT + task_gpa(next) + list.tasks);
	word(task_gpa(i) + list.tasks + 8, DIRECT + task_gpa(before) + list.tasks);
}

static void task_make(unsigned i)
{
	const uint64_t gpa = task_gpa(i), signal = SIGNALS_GPA + i * 64, node = gpa + list.thread_node;
	const uint64_t stack = STACKS + i * STACK_BYTES + 0x3000, page = STACKS_GPA + i * 4096;

	number(gpa + tasks.pid, i);
	number(gpa + tasks.tgid, i);
	number(gpa + list.state.at, 1);
	word(gpa + tasks.start_time, 1000 + i);
	snprintf((char *)memory.ram + gpa + tasks.comm, TASK_COMM_BYTES, "task%u", i);
	word(gpa + list.signal, DIRECT + signal);
	word(signal, DIRECT + node);
	word(signal + 8, DIRECT + node);
	word(node, DIRECT + signal);
	word(node + 8, DIRECT + signal);
	word(gpa + list.stack_pointer, stack + 0x400);
	map(stack, page, 1);
	/* As __switch_to_asm leaves it, then frames of 32 bytes: two of the scheduler, and what has called it. */
	word(page + 0x428, stack + 0x480);
	word(page + 0x430, WAITS + 0x10);
	for (unsigned frame = 0; frame < FRAMES; frame++) {
		word(page + 0x480 + frame * 32, frame + 1 < FRAMES ? stack + 0x480 + (frame + 1) * 32 : 0);
		word(page + 0x488 + frame * 32, frame == 0 ? WAITS + 0x40 : CODE + frame * 256);
	}
}

static void machine_make(unsigned n)
{
	n_tasks = n;
	memory.guest = (struct guest){.ops = &ops, .vcpus = 1};
	memory.ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory.ram == MAP_FAILED)
		exit(EXIT_FAILURE);
	memory.next_table = TABLES_GPA;
	cr3 = table_new();
	map(DIRECT, 0, 3);
	word(OFFSETS_GPA, DIRECT + AREA_GPA);
	word(AREA_GPA + tasks.this_cpu_off, DIRECT + AREA_GPA);
	for (unsigned i = 0; i <= n; i++)
		link_tasks(i);
	for (unsigned i = 1; i <= n; i++)
		task_make(i);
}

static void session_make(void)
{
	static const struct counter_route route = {.name = "none"};
	const char *why;

	kernel = (struct kernel_layout){.has_tasks = true,
	                                .has_list = true,
	                                .has_areas = true,
	                                .tasks = tasks,
	                                .list = list,
	                                .areas = {.offsets = DIRECT + OFFSETS_GPA,
	                                          .this_cpu_off = tasks.this_cpu_off,
	                                          .current_task = tasks.current_task,
	                                          .apic_id = 16,
	                                          .apic_id_bytes = sizeof(uint32_t)}};
	ring = ring_new(4u << 20, NULL);
	reader = ring ? ring_reader_open(ring_memfd(ring), NULL) : NULL;
	session.guest = &memory.guest;
	session.samplers = &sampler;
	session.rings = &ring;
	session.route = &route;
	session.running = true;
	session.config.wall_hz = 1;
	session.config.call_graph = SESSION_CALL_GRAPH_FP;
	session.config.n_events = 1;
	if (!reader || !counter_event_parse("task-clock", &session.config.events[0], NULL) ||
	    !session_config_settle(&session.config, NULL, &why, NULL))
		exit(EXIT_FAILURE);
	kernel_layout_settle(&kernel);
	session.kernel.layout = &kernel.os;
	session.kernel.unwind = (struct unwind_config){.depth = UNWIND_DEPTH_DEFAULT};
	g_mutex_init(&session.route_lock);
	sampler_init(&sampler, &memory.guest, 0);
	const struct sampler_config of_sampler = {.session = &session.config,
	                                          .unwind = &session.kernel.unwind,
	                                          .kernel = &kernel.os,
	                                          .claims = &session.claims};

	sampler_open_route(&sampler, &of_sampler, ring);
	if (!session_wall_start(&session, NULL))
		exit(EXIT_FAILURE);
}

static void ring_drain(void)
{
	size_t bytes;

	while (ring_reader_next(reader, &bytes))
		;
	ring_reader_release(reader);
}

static double thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

/* Median of the looks: thread time, in nanoseconds. `ran`: each task has run since the look before. */
static double look_ns(uint64_t *now_s, bool ran, unsigned *taken)
{
	double slices[SLICES];

	for (unsigned slice = 0; slice < SLICES; slice++) {
		for (unsigned i = 1; ran && i <= n_tasks; i++)
			word(task_gpa(i) + list.voluntary, word_at(task_gpa(i) + list.voluntary) + 1);
		const double begin = thread_ns();

		*taken = session_wall_look(&session, ++*now_s * NS_PER_S);
		slices[slice] = thread_ns() - begin;
		ring_drain();
	}
	qsort(slices, SLICES, sizeof(slices[0]), compare);
	return slices[SLICES / 2];
}

static void bench(unsigned n)
{
	struct session_statistics statistics;
	uint64_t now_s = 1;
	unsigned taken;

	machine_make(n);
	session_make();
	session_wall_look(&session, ++now_s * NS_PER_S);
	const double first = look_ns(&now_s, true, &taken);

	printf("%6u tasks  all ran: a look at all, %4u sampled: %8.0f us = %.2f us for each task\n", n, taken,
	       first / 1e3, first / 1e3 / n);
	/* So that each has had its turn. */
	for (unsigned i = 0; i <= n / WALL_SAMPLES_MAX; i++) {
		session_wall_look(&session, ++now_s * NS_PER_S);
		ring_drain();
	}
	const double stands = look_ns(&now_s, false, &taken);

	printf("%6u tasks  none ran: a look at all, %4u sampled: %7.0f us = %.2f us for each task, %.2f %% of a core at 1 Hz\n",
	       n, taken, stands / 1e3, stands / 1e3 / n, stands / 1e7);
	sampler_statistics_read(&sampler, NULL, &statistics);
	if (statistics.wall_torn + statistics.wall_no_frame + statistics.wall_broken + statistics.no_task +
	            statistics.dropbuf_sample !=
	    0)
		printf("some were dropped\n");
	session_wall_stop(&session);
	sampler_close(&sampler);
	ring_reader_free(reader);
	ring_free(ring);
	munmap(memory.ram, RAM_BYTES);
}

int main(void)
{
	bench(1000);
	bench(10000);
	return 0;
}
