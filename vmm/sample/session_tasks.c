// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_tasks.h"

#include <string.h>

#include "guest/os.h"

#define SWITCHES_TRIED 3u /* looks at a task that runs now and then, until one of them is whole */

struct looker {
	struct guest *guest;
	const struct os_kernel *kernel;
	const struct task_look_config *config;
	struct task_look *look;
	struct unwind_config unwind;
	struct module_table *modules;
	struct page_walk walk; /* by the kernel's own tables */
	struct os_area areas[GUEST_VCPUS_MAX];
	size_t n_areas;
	GHashTable *by_task; /* the numbers of tasks in the look, and 1, by the addresses of their task_structs */
	gint64 until_us;
};

static bool layout_check(const struct os_kernel *kernel, GError **error)
{
	if (kernel->list)
		return true;
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot read the guest's tasks: %s",
	            kernel->why[OS_TASKS]  ? kernel->why[OS_TASKS]
	            : kernel->why[OS_LIST] ? kernel->why[OS_LIST]
	                                   : "its kernel's image is not known");
	return false;
}

/* ---- a task ---- */

static const char *cgroup_name(struct looker *looker, const struct task *task)
{
	GHashTable *known = looker->look->cgroups;
	char buffer[OS_GROUP_PATH_BYTES];
	struct os_group cgroup;
	void *path;

	if (!looker->kernel->groups || !looker->kernel->groups->read(looker->kernel, &looker->walk, task, &cgroup))
		return NULL;
	if (!g_hash_table_lookup_extended(known, GSIZE_TO_POINTER(cgroup.node), NULL, &path)) {
		path = g_strdup(looker->kernel->groups->path(looker->kernel, &looker->walk, &cgroup, buffer));
		g_hash_table_insert(known, GSIZE_TO_POINTER(cgroup.node), path);
	}
	return path;
}

static bool has_room(const struct looker *looker)
{
	return looker->look->n_words + UNWIND_CHAIN_MAX <= TASK_LOOK_CHAIN_WORDS_MAX &&
	       g_get_monotonic_time() < looker->until_us;
}

static void chain_keep(struct looker *looker, struct looked_task *task, const uint64_t *chain, size_t n)
{
	struct task_look *look = looker->look;

	memcpy(look->words + look->n_words, chain, n * sizeof(*chain));
	task->chain = look->n_words;
	task->n_chain = n;
	look->n_words += n;
}

/* The process that Python frames are of. */
struct python_of {
	struct looked_code *code;
	uint64_t mm;
};

static void python_found(const struct python_frame *frame, struct page_walk *memory, void *data)
{
	const struct python_of *of = data;

	looked_code_add_python(of->code, of->mm, frame, memory);
}

/* In its address space, if that is known and wanted; `unwind` becomes what is needed for it, with `python`. */
static struct page_walk walk_of(struct looker *looker, const struct task *task, struct python_of *python,
                                struct unwind_config *unwind)
{
	struct page_walk walk = looker->walk;

	unwind->user = looker->look->code && looker->kernel->tasks->space(looker->kernel, &looker->walk, task, &walk);
	unwind->code = unwind->user ? looked_code_read(looker->look->code, &walk, task) : NULL;
	*python = (struct python_of){looker->look->code, task->mm};
	unwind->python_found = python_found;
	unwind->python_data = python;
	return walk;
}

/* The chain of a task that is not on a processor; false if it was on one meanwhile. */
static bool chain_of_sleeper(struct looker *looker, struct looked_task *task)
{
	const struct os_list *list = looker->kernel->list;
	uint64_t chain[UNWIND_CHAIN_MAX];
	struct unwind_config unwind = looker->unwind;
	struct python_of python;
	struct page_walk walk = walk_of(looker, &task->listed.task, &python, &unwind);
	uint8_t stack[PAGE_WALK_AHEAD_BYTES];
	struct frame frame;
	size_t n = 0;

	task->end = UNWIND_UNREADABLE;
	page_walk_read_ahead(&walk, (gva_t){task->listed.stack_pointer}, stack);
	if (list->frame(looker->kernel, &walk, &task->listed, &frame))
		n = unwind_from(&unwind, &walk, &frame, chain, &task->end);
	if (!list->sleeps_on(looker->kernel, &looker->walk, &task->listed))
		return false;
	chain_keep(looker, task, chain, n);
	if (task->listed.state != 'R')
		task->wait_channel = list->wait_channel(looker->kernel, chain, n);
	return true;
}

/* One that has ended (Z, X) has no stack that means anything. */
static void sleeper_look(struct looker *looker, struct looked_task *task)
{
	const struct os_kernel *kernel = looker->kernel;

	for (unsigned i = 0; i < SWITCHES_TRIED && !task->listed.on_cpu; i++) {
		if (task->listed.state == 'Z' || task->listed.state == 'X')
			return;
		if (!has_room(looker)) {
			looker->look->late++;
			return;
		}
		if (chain_of_sleeper(looker, task))
			return;
		/* It has ended if it cannot be read any more. */
		if (!kernel->list->read_at(kernel, &looker->walk, task->listed.task.address, &task->listed))
			break;
	}
	if (!task->listed.on_cpu)
		looker->look->torn++;
}

/* A task that no vCPU was seen to run. */
static void rest_look(struct looker *looker, struct looked_task *task)
{
	if (task->listed.on_cpu)
		looker->kernel->list->read_at(looker->kernel, &looker->walk, task->listed.task.address, &task->listed);
	sleeper_look(looker, task);
	task->runs = task->listed.on_cpu;
	looker->look->unseen += task->runs;
}

/* ---- the vCPUs ---- */

static struct task_cpu cpu_of(const struct looker *looker, const struct guest_vcpu *vcpu)
{
	struct task_cpu cpu = {0};

	task_cpu_note(&cpu, &vcpu->regs);
	/* In user space, and for some instructions behind an entry, the GS base of x86-64 is that of the process. */
	for (size_t i = 0; i < looker->n_areas && cpu.area == 0; i++)
		if (looker->areas[i].apic_id == vcpu->apic_id)
			cpu.area = looker->areas[i].area;
	return cpu;
}

/* The address of the task that a vCPU runs; 0: not known. */
static uint64_t task_of(struct looker *looker, const struct guest_vcpu *vcpu)
{
	const struct task_cpu cpu = cpu_of(looker, vcpu);
	struct page_walk walk;
	struct task task;

	return looker->kernel->tasks->read(looker->kernel, &cpu, looker->guest, &vcpu->regs, &walk, &task)
	               ? task.address
	               : 0;
}

static struct looked_task *task_get(struct looker *looker, uint64_t address)
{
	const struct task_view view = {.kernel = looker->kernel, .walk = &looker->walk};
	const struct task_targets *targets = looker->config->targets;
	const struct os_kernel *kernel = looker->kernel;
	size_t i = GPOINTER_TO_SIZE(g_hash_table_lookup(looker->by_task, GSIZE_TO_POINTER(address)));
	struct looked_task task = {.runs = true};

	if (i != 0)
		return &g_array_index(looker->look->tasks, struct looked_task, i - 1);
	/* An idle task, or one that began after the list was read. */
	if (!kernel->list->read_at(kernel, &looker->walk, address, &task.listed) ||
	    (targets && !task_targets_match(targets, NULL, &view, &task.listed.task)))
		return NULL;
	task.cgroup = cgroup_name(looker, &task.listed.task);
	g_array_append_val(looker->look->tasks, task);
	return &g_array_index(looker->look->tasks, struct looked_task, looker->look->tasks->len - 1);
}

/* On the vCPU's thread, if it is ours; the main thread waits for it. */
static void vcpu_take(void *data, const struct guest_vcpu *vcpu)
{
	struct looker *looker = data;
	uint64_t chain[UNWIND_CHAIN_MAX], address = vcpu->whole ? task_of(looker, vcpu) : 0;
	struct looked_task *task = address != 0 ? task_get(looker, address) : NULL;
	struct guest_regs regs = vcpu->regs;
	struct unwind_config unwinds = looker->unwind;
	struct python_of python;
	size_t n;

	if (!task)
		return;
	if (looker->look->n_words + UNWIND_CHAIN_MAX > TASK_LOOK_CHAIN_WORDS_MAX) {
		looker->look->late++;
		return;
	}
	if (!guest_regs_user(&regs))
		guest_regs_set_ip(&regs, guest_linked_address(looker->guest, guest_regs_ip(&regs)));
	task->runs = true;
	task->wait_channel = 0;
	task->listed.state = 'R';
	walk_of(looker, &task->listed.task, &python, &unwinds);
	n = unwind(&unwinds, looker->guest, &regs, NULL, chain, &task->end);
	chain_keep(looker, task, chain, n);
}

/* ---- all of them ---- */

static void task_take(struct looker *looker, const struct listed_task *listed)
{
	const struct task_look_config *config = looker->config;
	const struct task_view view = {.kernel = looker->kernel, .walk = &looker->walk};
	struct looked_task task = {.listed = *listed};

	if (config->targets && !task_targets_match(config->targets, NULL, &view, &listed->task))
		return;
	task.cgroup = cgroup_name(looker, &listed->task);
	g_array_append_val(looker->look->tasks, task);
	g_hash_table_insert(looker->by_task, GSIZE_TO_POINTER(listed->task.address),
	                    GSIZE_TO_POINTER(looker->look->tasks->len));
}

static void tasks_take(struct looker *looker)
{
	struct task_list list;

	looker->kernel->list->read(looker->kernel, &looker->walk, &list);
	looker->look->end = list.end;
	for (guint i = 0; i < list.tasks->len; i++)
		task_take(looker, &g_array_index(list.tasks, struct listed_task, i));
	task_list_clear(&list);
}

/* Chains of vCPUs first: they are what a limit must not cut off. */
static void chains_take(struct looker *looker)
{
	GArray *tasks = looker->look->tasks;

	if (looker->kernel->areas)
		looker->n_areas =
			looker->kernel->areas->read(looker->kernel, &looker->walk, looker->areas, GUEST_VCPUS_MAX);
	looker->until_us = g_get_monotonic_time() + TASK_LOOK_US_MAX;
	if (looker->guest->ops->vcpus_look)
		looker->guest->ops->vcpus_look(looker->guest, vcpu_take, looker);
	for (guint i = 0; i < tasks->len; i++) {
		struct looked_task *task = &g_array_index(tasks, struct looked_task, i);

		if (task->n_chain == 0)
			rest_look(looker, task);
	}
}

struct task_look *task_look_new(struct session *session, const struct task_look_config *config, GError **error)
{
	const struct os_kernel *kernel = session_kernel(session);
	g_autofree struct looker *looker = g_new0(struct looker, 1);

	looker->guest = session_guest(session);
	looker->kernel = kernel;
	looker->config = config;
	if (!layout_check(kernel, error))
		return NULL;
	if (!session_kernel_walk(session, &looker->walk)) {
		g_set_error_literal(
			error, SESSION_ERROR, SESSION_ERROR_STATE,
			"cannot read the guest's tasks: no vCPU's page tables lead to its kernel (yet); try again once it has booted");
		return NULL;
	}
	g_autofree struct module_table *modules = g_new0(struct module_table, 1);
	struct task_look *look = looker->look = g_new0(struct task_look, 1);

	look->tasks = g_array_new(FALSE, FALSE, sizeof(struct looked_task));
	look->words = g_new(uint64_t, TASK_LOOK_CHAIN_WORDS_MAX);
	look->cgroups = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	looker->by_task = g_hash_table_new(NULL, NULL);
	looker->unwind = session_unwinding(session);
	looker->unwind.depth = config->depth;
	look->orc = looker->unwind.tables != NULL;
	if (look->orc && kernel->modules) {
		kernel->modules->update(kernel, modules, &looker->walk, 0);
		looker->unwind.modules = modules;
	}
	if (config->user && kernel->mappings)
		look->code = looked_code_new(kernel, session_tables(session));
	tasks_take(looker);
	chains_take(looker);
	g_hash_table_unref(looker->by_task);
	look->words = g_renew(uint64_t, look->words, look->n_words + 1);
	return look;
}

void task_look_free(struct task_look *look)
{
	if (!look)
		return;
	g_array_unref(look->tasks);
	g_free(look->words);
	g_hash_table_unref(look->cgroups);
	looked_code_free(look->code);
	g_free(look);
}
