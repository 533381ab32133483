// SPDX-License-Identifier: BSD-2-Clause
/* Linux behind the door (guest/os.h): each call leads to the file that has the structures it reads. */
#include "linux/os_linux.h"

#include "linux/call_sites.h"
#include "linux/file_code.h"
#include "linux/module_symbols.h"
#include "linux/needs.h"
#include "linux/orc.h"
#include "linux/processor.h"
#include "linux/syscall_table.h"
#include "linux/text_sites.h"
#include "linux/tracepoint.h"
#include "linux/unwind_search.h"

/* include/linux/preempt.h: the bits of preempt_count() in interrupts and what they put off (softirqs, NMIs). */
#define IN_INTERRUPT UINT32_C(0x00ff0100)

/* ---- tasks ---- */

static bool tasks_read(const struct os_kernel *kernel, const struct task_cpu *cpu, struct guest *guest,
                       const struct guest_regs *regs, struct page_walk *walk, struct task *task)
{
	return task_read(&layout_of(kernel)->tasks, cpu, guest, regs, walk, task);
}

static bool tasks_read_at(const struct os_kernel *kernel, const struct task_cpu *cpu, struct guest *guest,
                          const struct guest_regs *regs, uint64_t address, struct page_walk *walk, struct task *task)
{
	return task_read_at(&layout_of(kernel)->tasks, cpu, guest, regs, address, walk, task);
}

static bool tasks_parent(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task,
                         struct task *parent)
{
	return task_read_parent(&layout_of(kernel)->tasks, walk, task, parent);
}

static bool tasks_parent_ids(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task,
                             struct task_parent *parent)
{
	return task_parent_read(&layout_of(kernel)->tasks, walk, task, parent);
}

static uint32_t tasks_execs(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task)
{
	return task_read_execs(&layout_of(kernel)->tasks, walk, task);
}

static bool tasks_has_ended(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task)
{
	return task_has_ended(&layout_of(kernel)->tasks, walk, task);
}

static bool tasks_space(const struct os_kernel *kernel, const struct page_walk *from, const struct task *task,
                        struct page_walk *walk)
{
	return task_walk_open(&layout_of(kernel)->tasks, from, task, walk);
}

static uint64_t tasks_any_area(const struct os_kernel *kernel, struct page_walk *walk)
{
	const struct kernel_layout *layout = layout_of(kernel);
	struct os_area area;

	if (layout->has_areas && cpu_areas_read(&layout->areas, walk, &area, 1) == 1)
		return area.area;
	return layout->has_areas ? 0 : task_first_area(&layout->tasks, walk);
}

static const struct os_tasks tasks = {
	.read = tasks_read,
	.read_at = tasks_read_at,
	.parent = tasks_parent,
	.parent_ids = tasks_parent_ids,
	.execs = tasks_execs,
	.has_ended = tasks_has_ended,
	.space = tasks_space,
	.any_area = tasks_any_area,
};

static bool list_is_there(const struct os_kernel *kernel, struct page_walk *walk)
{
	uint64_t word;

	return page_walk_read_kernel(walk, (gva_t){layout_of(kernel)->list.init_task}, &word, sizeof(word));
}

static void list_read(const struct os_kernel *kernel, struct page_walk *walk, struct task_list *list)
{
	task_list_read(&layout_of(kernel)->list, &layout_of(kernel)->tasks, walk, list);
}

static bool list_read_at(const struct os_kernel *kernel, struct page_walk *walk, uint64_t address,
                         struct listed_task *task)
{
	return listed_task_read(&layout_of(kernel)->list, &layout_of(kernel)->tasks, walk, address, task);
}

static bool list_frame(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task,
                       struct frame *frame)
{
	return listed_task_frame(&layout_of(kernel)->list, walk, task, frame);
}

static bool list_sleeps_on(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task)
{
	return listed_task_sleeps_on(&layout_of(kernel)->list, &layout_of(kernel)->tasks, walk, task);
}

static uint64_t list_wait_channel(const struct os_kernel *kernel, const uint64_t *chain, size_t n)
{
	return task_wait_channel(&layout_of(kernel)->list, chain, n);
}

static bool list_only_schedules(const struct os_kernel *kernel, uint64_t ip)
{
	return task_only_schedules(&layout_of(kernel)->list, ip);
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

static gva_t switches_at(const struct os_kernel *kernel)
{
	return layout_of(kernel)->switch_to;
}

/* __switch_to(struct task_struct *prev, struct task_struct *next) */
static void switches_tasks(const struct guest_gprs *gprs, uint64_t *previous, uint64_t *next)
{
	*previous = guest_gprs_argument(gprs, 0);
	*next = guest_gprs_argument(gprs, 1);
}

static gva_t switches_rename_at(const struct os_kernel *kernel)
{
	return layout_of(kernel)->set_comm;
}

/* __set_task_comm(struct task_struct *tsk, const char *buf, bool exec) */
static bool switches_renamed(struct page_walk *walk, const struct guest_gprs *gprs, uint64_t *task,
                             char comm[TASK_COMM_BYTES])
{
	*task = guest_gprs_argument(gprs, 0);
	return task_comm_read(walk, (gva_t){guest_gprs_argument(gprs, 1)}, comm);
}

static gva_t switches_wake_at(const struct os_kernel *kernel)
{
	return layout_of(kernel)->wake_up;
}

/* try_to_wake_up(struct task_struct *p, unsigned int state, int wake_flags) */
static uint64_t switches_woken(const struct guest_gprs *gprs)
{
	return guest_gprs_argument(gprs, 0);
}

/* The task is in one of these states, and not only about to be. */
static bool switches_wakes(const struct os_kernel *kernel, struct page_walk *walk, const struct guest_gprs *gprs)
{
	const gva_t at = {guest_gprs_argument(gprs, 0) + layout_of(kernel)->list.state.at};
	uint32_t state;

	return page_walk_read_kernel(walk, at, &state, sizeof(state)) &&
	       (state & (uint32_t)guest_gprs_argument(gprs, 1)) != 0;
}

static bool switches_in_interrupt(const struct os_kernel *kernel, struct page_walk *walk, const struct task_cpu *cpu,
                                  const struct task *task)
{
	const struct kernel_layout *layout = layout_of(kernel);
	uint64_t at = 0;
	uint32_t count;

	if (layout->preempt_count.value != 0)
		at = cpu->area + layout->preempt_count.value;
	else if (layout->task_preempt_count != 0)
		at = task->address + layout->task_preempt_count;
	return page_walk_read_kernel(walk, (gva_t){at}, &count, sizeof(count)) && (count & IN_INTERRUPT) != 0;
}

static const struct os_switches switches = {
	.at = switches_at,
	.tasks = switches_tasks,
	.rename_at = switches_rename_at,
	.renamed = switches_renamed,
	.wake_at = switches_wake_at,
	.woken = switches_woken,
	.wakes = switches_wakes,
	.in_interrupt = switches_in_interrupt,
};

static bool waits_lock(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task,
                       struct os_lock *lock)
{
	return lock_wait_find(&layout_of(kernel)->locks, walk, task->task.address, task->stack_pointer, lock);
}

static const struct os_waits waits = {.lock = waits_lock};

static bool groups_read(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task,
                        struct os_group *group)
{
	return cgroup_read(&layout_of(kernel)->cgroups, walk, task, group);
}

static const char *groups_path(const struct os_kernel *kernel, struct page_walk *walk, const struct os_group *group,
                               char buffer[OS_GROUP_PATH_BYTES])
{
	return cgroup_path(&layout_of(kernel)->cgroups, walk, group, buffer);
}

static const struct os_groups groups = {.read = groups_read, .path = groups_path};

/* ---- code ---- */

static bool mappings_each(const struct os_kernel *kernel, struct page_walk *walk, uint64_t mm,
                          bool (*each)(const struct os_mapping *mapping, void *data), void *data)
{
	return vma_each(&layout_of(kernel)->mappings, walk, mm, each, data);
}

static bool mappings_state(const struct os_kernel *kernel, struct page_walk *walk, uint64_t mm,
                           struct os_mapping_state *state)
{
	return vma_state_read(&layout_of(kernel)->mappings, walk, mm, state);
}

static const char *mappings_file_name(const struct os_kernel *kernel, struct page_walk *walk, uint64_t file,
                                      char buffer[OS_FILE_NAME_BYTES])
{
	return vma_file_name(&layout_of(kernel)->mappings, walk, file, buffer);
}

static bool mappings_file_pages(const struct os_kernel *kernel, struct page_walk *walk, uint64_t file, uint64_t *pages)
{
	return page_walk_read_kernel(walk, (gva_t){file + layout_of(kernel)->mappings.file_mapping}, pages,
	                             sizeof(*pages));
}

static const struct os_mappings mappings = {
	.each = mappings_each,
	.state = mappings_state,
	.file_name = mappings_file_name,
	.file_pages = mappings_file_pages,
};

static bool modules_update(const struct os_kernel *kernel, struct module_table *table, struct page_walk *walk,
                           uint64_t now_ns)
{
	return module_table_update(table, &layout_of(kernel)->modules, walk, now_ns);
}

static bool modules_is_due(const struct os_kernel *kernel, const struct module_table *table, struct page_walk *walk,
                           uint64_t now_ns)
{
	return module_table_is_due(table, &layout_of(kernel)->modules, walk, now_ns);
}

static bool modules_is_there(const struct os_kernel *kernel, struct page_walk *walk, const struct module *module)
{
	return module_is_there(&layout_of(kernel)->modules, walk, module);
}

static struct symtab *modules_symbols(const struct os_kernel *kernel, struct page_walk *walk,
                                      const struct module *module, uint64_t room)
{
	return module_symbols_read(&layout_of(kernel)->modules, walk, module, room);
}

static const struct os_modules modules = {
	.update = modules_update,
	.is_due = modules_is_due,
	.is_there = modules_is_there,
	.symbols = modules_symbols,
};

static uint64_t files_find(const struct os_kernel *kernel, struct page_walk *walk, const char *name, const char **why)
{
	if (layout_of(kernel)->has_inodes)
		return inode_find(&layout_of(kernel)->inodes, walk, name, why);
	*why = "its kernel does not say where its files are";
	return 0;
}

/* A struct page_cache of its own. */
static struct os_file *files_open(const struct os_kernel *kernel, struct page_walk *walk, uint64_t pages,
                                  uint64_t *bytes)
{
	struct page_cache *cache = g_new(struct page_cache, 1);

	if (page_cache_open(cache, &layout_of(kernel)->page_cache, walk, pages, bytes))
		return (struct os_file *)cache;
	g_free(cache);
	return NULL;
}

static bool files_read(struct os_file *file, uint64_t number, uint8_t page[PAGE_WALK_AHEAD_BYTES])
{
	_Static_assert(PAGE_WALK_AHEAD_BYTES == PAGE_CACHE_PAGE_BYTES, "a page");
	return page_cache_read((struct page_cache *)file, number, page);
}

static void files_close(struct os_file *file)
{
	g_free(file);
}

static const struct os_files files = {
	.find = files_find,
	.open = files_open,
	.read = files_read,
	.close = files_close,
};

static bool code_open(struct file_code *code, const struct os_kernel *kernel, struct page_walk *walk, uint64_t file,
                      uint64_t offset)
{
	return file_code_open(code, layout_of(kernel), walk, file, offset);
}

static const struct os_file_code file_code = {
	.open = code_open,
	.read = file_code_read,
	.find = file_code_find,
	.is_mapped = file_code_is_mapped,
};

/* ---- the kernel itself ---- */

static size_t areas_read(const struct os_kernel *kernel, struct page_walk *walk, struct os_area *areas, size_t n_max)
{
	return cpu_areas_read(&layout_of(kernel)->areas, walk, areas, n_max);
}

static uint64_t areas_direct_map(const struct os_kernel *kernel, struct page_walk *walk)
{
	return cpu_area_direct_map(&layout_of(kernel)->areas, walk);
}

static const struct os_areas areas = {.read = areas_read, .direct_map = areas_direct_map};

bool linux_call_read(struct guest *guest, const struct guest_regs *regs, const struct guest_gprs *gprs,
                     struct os_call *call)
{
	/* A pointer to struct pt_regs is among the first two arguments: the one that is a kernel address. */
	const uint64_t first = guest_gprs_argument(gprs, 0), at = first >> 63 ? first : guest_gprs_argument(gprs, 1);
	struct page_walk walk;

	page_walk_init_regs(&walk, guest, regs);
	return linux_processor_of(gprs->processor)->call_read(&walk, at, call);
}

static const struct os_calls calls = {
	.read = linux_call_read,
	.load = syscall_table_load,
	.free = syscall_table_free,
	.names = syscall_table_names,
	.parameter = syscall_table_parameter,
};

static const struct os_texts texts = {
	.load = text_sites_read,
	.free = text_sites_free,
	.change = text_sites_find,
};

static const struct os_tracepoints tracepoints = {
	.load = tracepoints_load,
	.free = tracepoints_free,
	.all = tracepoints_all,
	.find = tracepoints_find,
	.arguments = tracepoint_arguments,
	.has_arguments = tracepoint_has_arguments,
	.run = tracepoint_site_run,
};

static bool unwinding_entered(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                              enum step *step, enum unwind_end *end)
{
	return linux_processor_of(frame->processor)->entered(config, memory, frame, step, end);
}

const struct os_unwinding linux_unwinding = {
	.name = "ORC",
	.has_tables = {[ARCH_X86_64] = true},
	.load = orc_load,
	.free = orc_free,
	.step = unwind_orc_step,
	.entered = unwinding_entered,
	.sites_load = call_sites_load,
	.sites_free = call_sites_free,
	.search = unwind_search,
	.search_user = unwind_search_user,
};

/* ---- the system ---- */

void kernel_layout_settle(struct kernel_layout *layout)
{
	struct os_kernel *kernel = &layout->os;

	kernel->os = &os_linux;
	kernel->switches = &switches;
	kernel->why[OS_SWITCHES] = layout->switch_to.value == 0 ? "the kernel has no symbol __switch_to" : NULL;
	kernel->tasks = layout->has_tasks ? &tasks : NULL;
	kernel->list = layout->has_list ? &list : NULL;
	kernel->waits = layout->has_locks ? &waits : NULL;
	kernel->groups = layout->has_cgroups ? &groups : NULL;
	kernel->mappings = layout->has_mappings ? &mappings : NULL;
	kernel->modules = layout->has_modules ? &modules : NULL;
	kernel->files = layout->has_page_cache ? &files : NULL;
	kernel->areas = layout->has_areas ? &areas : NULL;
	kernel->why[OS_FILE_CODE] = file_code_why_not(layout);
	kernel->file_code = kernel->why[OS_FILE_CODE] ? NULL : &file_code;
	if (!layout->has_tasks)
		return;
	kernel->places.current_task = layout->tasks.current_task;
	kernel->places.task_mm = layout->tasks.mm;
	kernel->places.mm_root = layout->tasks.mm_pgd;
	if (!layout->has_areas)
		return;
	kernel->places.interrupt_in_use = layout->areas.interrupt_in_use;
	kernel->places.entry_stack = layout->areas.entry_stack;
	kernel->places.task_stack = layout->areas.task_stack;
}

static struct os_kernel *load(const struct image *image)
{
	return &kernel_layout_load(image)->os;
}

static struct os_kernel *none(const char *why)
{
	return &kernel_layout_none(why)->os;
}

static void kernel_free(struct os_kernel *kernel)
{
	kernel_layout_free((struct kernel_layout *)kernel);
}

const struct guest_os os_linux = {
	.name = "Linux",
	.recognises = image_is_linux,
	.load = load,
	.none = none,
	.free = kernel_free,
	.needs = linux_needs,
	.unwinding = &linux_unwinding,
	.tracepoints = &tracepoints,
	.calls = &calls,
	.texts = &texts,
};
