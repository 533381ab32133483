// SPDX-License-Identifier: BSD-2-Clause
/*
 * The demonstration guest behind the door (guest/os.h): each vCPU runs one program, which is a task (vprof/demo.h). The
 * stack pointer tells which vCPU it is. A vCPU without a program is idle.
 */
#include "demo_os/os_demo.h"

#include <string.h>
#include <vprof/demo.h>

#define STACKS_BYTES ((uint64_t)VPROF_DEMO_VCPUS_MAX * VPROF_DEMO_STACK_BYTES)

_Static_assert(VPROF_DEMO_NAME_BYTES == TASK_COMM_BYTES, "a program's name is that of a task");

struct demo_kernel {
	struct os_kernel os; /* first */
	uint64_t programs, kernel_stacks, user_stacks;
	char *why;
};

static const struct demo_kernel *demo_of(const struct os_kernel *kernel)
{
	return (const struct demo_kernel *)kernel;
}

/* ---- tasks ---- */

/* What the record at `address` says; false when that is none. */
static bool program_read(const struct demo_kernel *demo, struct page_walk *walk, uint64_t address, struct task *task)
{
	const uint64_t offset = address - demo->programs;
	struct vprof_demo_program program;

	if (offset % sizeof(program) != 0 || offset / sizeof(program) >= VPROF_DEMO_VCPUS_MAX ||
	    !page_walk_read_kernel(walk, (gva_t){address}, &program, sizeof(program)))
		return false;
	*task = (struct task){.address = address, .comm = "idle"};
	if (!program.runs)
		return true;
	if (program.id != offset / sizeof(program) + 1 || !memchr(program.name, '\0', sizeof(program.name)))
		return false;
	for (size_t i = 0; program.name[i]; i++)
		task->comm[i] = (char)(g_ascii_isprint(program.name[i]) ? program.name[i] : '?');
	task->comm[strlen(program.name)] = '\0';
	task->pid = task->tid = program.id;
	task->mm = address;
	return true;
}

/* Which of these stacks has the stack pointer, which is at the end of an empty one. */
static bool stack_find(uint64_t stacks, uint64_t sp, uint64_t *n)
{
	*n = (sp - 1 - stacks) / VPROF_DEMO_STACK_BYTES;
	return sp - 1 - stacks < STACKS_BYTES;
}

static bool tasks_read(const struct os_kernel *kernel, const struct task_cpu *cpu G_GNUC_UNUSED, struct guest *guest,
                       const struct guest_regs *regs, struct page_walk *walk, struct task *task)
{
	const struct demo_kernel *demo = demo_of(kernel);
	const uint64_t sp = guest_regs_stack(regs);
	uint64_t vcpu;

	page_walk_init_regs(walk, guest, regs);
	return (stack_find(demo->kernel_stacks, sp, &vcpu) || stack_find(demo->user_stacks, sp, &vcpu)) &&
	       program_read(demo, walk, demo->programs + vcpu * sizeof(struct vprof_demo_program), task);
}

static bool tasks_read_at(const struct os_kernel *kernel, const struct task_cpu *cpu G_GNUC_UNUSED, struct guest *guest,
                          const struct guest_regs *regs, uint64_t address, struct page_walk *walk, struct task *task)
{
	page_walk_init_regs(walk, guest, regs);
	return program_read(demo_of(kernel), walk, address, task);
}

static bool tasks_parent_ids(const struct os_kernel *kernel G_GNUC_UNUSED, struct page_walk *walk G_GNUC_UNUSED,
                             const struct task *task G_GNUC_UNUSED, struct task_parent *parent G_GNUC_UNUSED)
{
	return false;
}

static uint32_t tasks_execs(const struct os_kernel *kernel G_GNUC_UNUSED, struct page_walk *walk G_GNUC_UNUSED,
                            const struct task *task G_GNUC_UNUSED)
{
	return 0;
}

static bool tasks_has_ended(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task)
{
	struct task now;

	return !program_read(demo_of(kernel), walk, task->address, &now) || now.tid != task->tid;
}

/* There is one, for the kernel and all programs. */
static bool tasks_space(const struct os_kernel *kernel G_GNUC_UNUSED, const struct page_walk *from,
                        const struct task *task, struct page_walk *walk)
{
	*walk = *from;
	return task->mm != 0;
}

static uint64_t tasks_any_area(const struct os_kernel *kernel G_GNUC_UNUSED, struct page_walk *walk G_GNUC_UNUSED)
{
	return 0;
}

static const struct os_tasks tasks = {
	.read = tasks_read,
	.read_at = tasks_read_at,
	.parent_ids = tasks_parent_ids,
	.execs = tasks_execs,
	.has_ended = tasks_has_ended,
	.space = tasks_space,
	.any_area = tasks_any_area,
};

/* ---- all of them, each on its vCPU ---- */

static bool list_is_there(const struct os_kernel *kernel, struct page_walk *walk)
{
	struct task task;

	return program_read(demo_of(kernel), walk, demo_of(kernel)->programs, &task);
}

static bool list_read_at(const struct os_kernel *kernel, struct page_walk *walk, uint64_t address,
                         struct listed_task *listed)
{
	const struct demo_kernel *demo = demo_of(kernel);

	*listed = (struct listed_task){.state = 'R', .next_state = 'R', .on_cpu = true};
	listed->cpu = (uint32_t)((address - demo->programs) / sizeof(struct vprof_demo_program));
	if (!program_read(demo, walk, address, &listed->task))
		return false;
	listed->kernel_thread = listed->task.mm == 0;
	return true;
}

static void list_read(const struct os_kernel *kernel, struct page_walk *walk, struct task_list *list)
{
	*list = (struct task_list){.tasks = g_array_new(FALSE, FALSE, sizeof(struct listed_task)),
	                           .end = TASK_LIST_WHOLE};
	for (unsigned i = 0; i < VPROF_DEMO_VCPUS_MAX; i++) {
		const uint64_t address = demo_of(kernel)->programs + i * sizeof(struct vprof_demo_program);
		struct listed_task listed;

		if (!list_read_at(kernel, walk, address, &listed))
			list->end = TASK_LIST_BROKEN;
		else if (listed.task.tid != 0)
			g_array_append_val(list->tasks, listed);
	}
}

static bool list_frame(const struct os_kernel *kernel G_GNUC_UNUSED, struct page_walk *walk G_GNUC_UNUSED,
                       const struct listed_task *task G_GNUC_UNUSED, struct frame *frame G_GNUC_UNUSED)
{
	return false;
}

static bool list_sleeps_on(const struct os_kernel *kernel G_GNUC_UNUSED, struct page_walk *walk G_GNUC_UNUSED,
                           const struct listed_task *task G_GNUC_UNUSED)
{
	return false;
}

static uint64_t list_wait_channel(const struct os_kernel *kernel G_GNUC_UNUSED, const uint64_t *chain G_GNUC_UNUSED,
                                  size_t n G_GNUC_UNUSED)
{
	return 0;
}

static bool list_only_schedules(const struct os_kernel *kernel G_GNUC_UNUSED, uint64_t ip G_GNUC_UNUSED)
{
	return false;
}

static const struct os_list list = {
	.is_there = list_is_there,
	.read = list_read,
	.read_at = list_read_at,
	.frame = list_frame,
	.sleeps_on = list_sleeps_on,
	.wait_channel = list_wait_channel,
	.only_schedules = list_only_schedules,
};

/* ---- the system ---- */

static uint64_t data_symbol(const struct symtab *symtab, const char *name)
{
	const uint64_t address = symtab_address(symtab, name);

	/* The end of the array may be the end of the address space, and not beyond. */
	return address <= UINT64_MAX - STACKS_BYTES ? address : 0;
}

static bool programs_find(const struct image *image, struct demo_kernel *demo)
{
	struct symtab *symtab = symtab_load(image, NULL);

	if (!symtab)
		return false;
	symtab_index_names(symtab);
	demo->programs = data_symbol(symtab, "demo_programs");
	demo->kernel_stacks = data_symbol(symtab, "kernel_stacks");
	demo->user_stacks = data_symbol(symtab, "user_stacks");
	symtab_free(symtab);
	return demo->programs != 0 && demo->kernel_stacks != 0 && demo->user_stacks != 0;
}

static bool recognises(const struct image *image)
{
	struct demo_kernel demo;

	return programs_find(image, &demo);
}

static struct os_kernel *none(const char *why)
{
	struct demo_kernel *demo = g_new0(struct demo_kernel, 1);

	demo->why = g_strdup(why);
	demo->os.os = &os_demo;
	demo->os.why[OS_TASKS] = demo->why;
	demo->os.why[OS_SWITCHES] = "a vCPU of the demonstration guest runs one program and never switches";
	return &demo->os;
}

static struct os_kernel *load(const struct image *image)
{
	struct os_kernel *kernel = none(NULL);
	struct demo_kernel *demo = (struct demo_kernel *)kernel;

	if (!programs_find(image, demo))
		return kernel;
	kernel->tasks = &tasks;
	kernel->list = &list;
	kernel->why[OS_MAPPINGS] = "the code of its programs is in the image of its kernel";
	kernel->why[OS_GROUPS] = "the demonstration guest has no groups of tasks";
	return kernel;
}

static void demo_free(struct os_kernel *kernel)
{
	struct demo_kernel *demo = (struct demo_kernel *)kernel;

	g_free(demo->why);
	g_free(demo);
}

const struct guest_os os_demo = {
	.name = "the demonstration guest",
	.recognises = recognises,
	.load = load,
	.none = none,
	.free = demo_free,
	.why_no_tracepoints = "the demonstration guest has no trace points",
	.why_no_calls = "the demonstration guest has no named system calls",
};
