// SPDX-License-Identifier: BSD-2-Clause
#include "linux/task_list.h"

#include <linux/perf_event.h>
#include <string.h>

#include "linux/processor.h"

#define READS_MAX 3u        /* of a list that changes meanwhile */
#define SPAN_GAP_BYTES 256u /* are read rather than left out */

/* struct list_head */
struct link {
	uint64_t next, prev;
};

/* include/linux/sched.h, as of 5.0 and later. */
enum {
	STATE_UNINTERRUPTIBLE = 0x2,
	STATE_REPORT = 0x7f, /* what has a letter of its own; with those of exit_state */
	STATE_NOLOAD = 0x400,
	STATE_RTLOCK_WAIT = 0x1000,
	STATE_FROZEN = 0x8000,
	FLAG_KERNEL_THREAD = 0x200000, /* PF_KTHREAD */
};

/* ---- where everything is ---- */

/* A structure within task_struct, and a member of it. */
static bool inner_find(const struct types *types, const char *outer, const char *structure, const char *member,
                       uint32_t bytes, uint32_t *offset, GError **error)
{
	uint32_t at, within;
	const struct types_member members[] = {{"task_struct", outer, TYPES_PLACE, &at},
	                                       {structure, member, bytes, &within}};

	if (!types_find(types, members, G_N_ELEMENTS(members), error))
		return false;
	*offset = MIN(at, TASK_STRUCT_BYTES_MAX) + MIN(within, TASK_STRUCT_BYTES_MAX);
	return true;
}

/* Optional: CONFIG_SCHED_INFO. */
static void queued_find(struct task_list_layout *layout, const struct types *types)
{
	uint32_t info, delay;

	if (types_has(types, "task_struct", "sched_info", TYPES_PLACE, &info) &&
	    types_has(types, "sched_info", "run_delay", 8, &delay))
		layout->queued = MIN(info, TASK_STRUCT_BYTES_MAX) + MIN(delay, TASK_STRUCT_BYTES_MAX);
}

/* What a task keeps of its registers while it does not run: on its stack, and on arm64 in a structure of its own. */
static bool saved_find(struct task_list_layout *layout, const struct types *types, GError **error)
{
	uint32_t thread, context;
	const struct types_member members[] = {
		{"task_struct", "thread", TYPES_PLACE, &thread},
		{"cpu_context", "sp", 8, &layout->stack_pointer},
		{"cpu_context", "fp", 8, &layout->frame_pointer},
		{"cpu_context", "pc", 8, &layout->pc},
	};

	if (!types_has(types, "thread_struct", "cpu_context", TYPES_PLACE, &context))
		return inner_find(types, "thread", "thread_struct", "sp", 8, &layout->stack_pointer, error);
	if (!types_find(types, members, G_N_ELEMENTS(members), error))
		return false;
	for (size_t i = 1; i < G_N_ELEMENTS(members); i++)
		*members[i].offset = MIN(*members[i].offset, TASK_STRUCT_BYTES_MAX) +
		                     MIN(thread, TASK_STRUCT_BYTES_MAX) + MIN(context, TASK_STRUCT_BYTES_MAX);
	return true;
}

static bool members_find(struct task_list_layout *layout, const struct types *types, GError **error)
{
	/* Linux 5.14 has renamed it; 5.16 has moved the other one. */
	const bool renamed = types_find_number(types, "task_struct", "__state", &layout->state, NULL);
	const bool moved = types_has(types, "thread_info", "cpu", 4, &layout->cpu);
	const struct types_member cpu = {"task_struct", "cpu", 4, &layout->cpu};
	const struct types_member members[] = {
		{"task_struct", "flags", 4, &layout->flags},
		{"task_struct", "tasks", TYPES_PLACE, &layout->tasks},
		{"task_struct", "signal", 8, &layout->signal},
		{"task_struct", "thread_node", TYPES_PLACE, &layout->thread_node},
		{"signal_struct", "thread_head", TYPES_PLACE, &layout->thread_head},
		{"task_struct", "nvcsw", 8, &layout->voluntary},
		{"task_struct", "nivcsw", 8, &layout->involuntary},
	};

	return types_find(types, members, G_N_ELEMENTS(members), error) &&
	       types_find_number(types, "task_struct", "on_cpu", &layout->on_cpu, error) &&
	       (renamed || types_find_number(types, "task_struct", "state", &layout->state, error)) &&
	       (moved ? inner_find(types, "thread_info", "thread_info", "cpu", 4, &layout->cpu, error)
	              : types_find(types, &cpu, 1, error)) &&
	       inner_find(types, "se", "sched_entity", "sum_exec_runtime", 8, &layout->runtime, error) &&
	       saved_find(layout, types, error);
}

static int compare_offsets(const void *a, const void *b)
{
	const uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

	return (first > second) - (first < second);
}

/* The members are few in some KiB: what is between them need not be read. */
static void spans_find(struct task_list_layout *layout, uint32_t *offsets, size_t n)
{
	qsort(offsets, n, sizeof(*offsets), compare_offsets);
	layout->n_spans = 1;
	layout->spans[0].at = offsets[0];
	for (size_t i = 0; i < n; i++) {
		const unsigned last = layout->n_spans - 1;

		if (offsets[i] > layout->spans[last].at + layout->spans[last].bytes + SPAN_GAP_BYTES &&
		    layout->n_spans < TASK_SPANS_MAX)
			layout->spans[layout->n_spans++].at = offsets[i];
		layout->spans[layout->n_spans - 1].bytes =
			offsets[i] + TASK_COMM_BYTES - layout->spans[layout->n_spans - 1].at;
	}
}

/* How much of a task_struct has all members; false when that is more than is read. */
static bool extent_find(struct task_list_layout *layout, const struct task_layout *tasks, GError **error)
{
	uint32_t offsets[] = {
		tasks->pid,
		tasks->tgid,
		tasks->start_time,
		tasks->exit_state,
		tasks->mm,
		layout->state.at,
		layout->flags,
		layout->on_cpu.at,
		layout->cpu,
		layout->tasks,
		layout->signal,
		layout->thread_node,
		layout->runtime,
		layout->voluntary,
		layout->involuntary,
		layout->stack_pointer,
		layout->pc ? layout->pc : tasks->pid,
		layout->frame_pointer ? layout->frame_pointer : tasks->pid,
		tasks->comm,
		layout->queued ? layout->queued : tasks->pid,
	};
	uint32_t last = 0;

	/* None of them is longer than a struct link, or a name. */
	_Static_assert(sizeof(struct link) == TASK_COMM_BYTES, "the bytes behind the last offset");
	for (size_t i = 0; i < G_N_ELEMENTS(offsets); i++)
		last = MAX(last, offsets[i]);
	if (last > TASK_STRUCT_BYTES_MAX - TASK_COMM_BYTES) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE,
		            "the kernel's struct task_struct has a member at %u, which is not read: the limit is %u",
		            last, TASK_STRUCT_BYTES_MAX);
		return false;
	}
	layout->bytes = last + TASK_COMM_BYTES;
	spans_find(layout, offsets, G_N_ELEMENTS(offsets));
	return true;
}

/* Functions in the scheduler's part of the code that callers take a lock by, or wait for a device. */
static bool is_lock(const struct symbol *symbol)
{
	static const char *const prefixes[] = {
		"mutex_lock", "__mutex_lock", "ww_mutex_lock", "__ww_mutex_lock", "down",
		"__down",     "rwsem_down",   "percpu_down",   "__percpu_down",   "rt_mutex",
		"__rt_mutex", "rtlock",       "io_schedule",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++)
		if (g_str_has_prefix(symbol->name, prefixes[i]))
			return true;
	return false;
}

/* What does not fit is taken for the scheduler's. */
static void locks_find(struct task_list_layout *layout, const struct symtab *symtab)
{
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n && layout->n_locks < TASK_LOCKS_MAX; i++)
		if (task_only_waits(layout, symbols[i].address) && is_lock(&symbols[i]))
			layout->locks[layout->n_locks++] =
				(struct task_code){symbols[i].address, symbols[i].address + symbols[i].size};
}

bool task_list_layout_load(const struct symtab *symtab, const struct types *types, const struct task_layout *tasks,
                           struct task_list_layout *layout, GError **error)
{
	struct task_list_layout loaded = {
		.init_task = symtab_address(symtab, "init_task"),
		.fork_return = symtab_address(symtab, "ret_from_fork_asm"),
		.waits = {symtab_address(symtab, "__sched_text_start"), symtab_address(symtab, "__sched_text_end"),
	                  symtab_address(symtab, "__lock_text_start"), symtab_address(symtab, "__lock_text_end")},
	};

	/* Up to 6.5, that was its name. */
	if (loaded.fork_return == 0)
		loaded.fork_return = symtab_address(symtab, "ret_from_fork");
	if (loaded.init_task == 0) {
		g_set_error(
			error, TASK_ERROR, TASK_ERROR_NONE,
			"the kernel has no symbol init_task; it needs CONFIG_KALLSYMS_ALL if the image is stripped");
		return false;
	}
	queued_find(&loaded, types);
	locks_find(&loaded, symtab);
	if (!members_find(&loaded, types, error) || !extent_find(&loaded, tasks, error))
		return false;
	*layout = loaded;
	return true;
}

/* ---- a task ---- */

static uint32_t number_at(const uint8_t *bytes, uint32_t offset)
{
	uint32_t number;

	memcpy(&number, bytes + offset, sizeof(number));
	return number;
}

static uint64_t word_at(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static struct link link_at(const uint8_t *bytes, uint32_t offset)
{
	struct link link;

	memcpy(&link, bytes + offset, sizeof(link));
	return link;
}

/* As __task_state_index and task_index_to_char of include/linux/sched.h. */
static char state_letter(uint32_t state, uint32_t exit_state)
{
	static const char letters[] = "RSDTtXZP";
	uint32_t report = (state | exit_state) & STATE_REPORT;
	unsigned index = 0;

	if (state & (STATE_RTLOCK_WAIT | STATE_FROZEN))
		report = STATE_UNINTERRUPTIBLE;
	else if ((state & STATE_UNINTERRUPTIBLE) && (state & STATE_NOLOAD))
		return 'I';
	for (; report != 0; report >>= 1)
		index++;
	return letters[index];
}

static bool listed_task_decode(const struct task_list_layout *layout, const struct task_layout *tasks,
                               const uint8_t *bytes, uint64_t address, struct listed_task *task)
{
	if (!task_decode(tasks, bytes, address, &task->task))
		return false;
	task->kernel_thread = number_at(bytes, layout->flags) & FLAG_KERNEL_THREAD;
	task->on_cpu = types_number_read(layout->on_cpu, bytes) != 0;
	task->next_state =
		state_letter((uint32_t)types_number_read(layout->state, bytes), number_at(bytes, tasks->exit_state));
	task->state = task->on_cpu ? 'R' : task->next_state;
	task->cpu = number_at(bytes, layout->cpu);
	task->cpu_ns = word_at(bytes, layout->runtime);
	task->queued_ns = layout->queued ? word_at(bytes, layout->queued) : 0;
	task->switches = word_at(bytes, layout->voluntary) + word_at(bytes, layout->involuntary);
	task->stack_pointer = word_at(bytes, layout->stack_pointer);
	task->frame_pointer = layout->frame_pointer ? word_at(bytes, layout->frame_pointer) : 0;
	task->pc = layout->pc ? word_at(bytes, layout->pc) : 0;
	return true;
}

/* What is not a member, or near one, stays as it was. */
static bool struct_read(const struct task_list_layout *layout, struct page_walk *walk, uint64_t address,
                        uint8_t bytes[TASK_STRUCT_BYTES_MAX])
{
	for (unsigned i = 0; i < layout->n_spans; i++)
		if (!page_walk_read_kernel(walk, (gva_t){address + layout->spans[i].at}, bytes + layout->spans[i].at,
		                           layout->spans[i].bytes))
			return false;
	return layout->n_spans > 0 || page_walk_read_kernel(walk, (gva_t){address}, bytes, layout->bytes);
}

bool listed_task_read(const struct task_list_layout *layout, const struct task_layout *tasks, struct page_walk *walk,
                      uint64_t address, struct listed_task *task)
{
	uint8_t bytes[TASK_STRUCT_BYTES_MAX];

	return struct_read(layout, walk, address, bytes) && listed_task_decode(layout, tasks, bytes, address, task);
}

bool listed_task_frame(const struct task_list_layout *layout, struct page_walk *walk, const struct listed_task *task,
                       struct frame *frame)
{
	return linux_processor_of(walk->tables.processor)->from_switch(walk, task, layout->fork_return, frame);
}

bool listed_task_sleeps_on(const struct task_list_layout *layout, const struct task_layout *tasks,
                           struct page_walk *walk, const struct listed_task *task)
{
	struct listed_task now;

	return listed_task_read(layout, tasks, walk, task->task.address, &now) && !now.on_cpu &&
	       now.switches == task->switches && now.task.start_time == task->task.start_time;
}

/* ---- the lists ---- */

struct reader {
	const struct task_list_layout *layout;
	const struct task_layout *tasks;
	struct page_walk *walk;
	GHashTable *seen; /* addresses of the tasks in the list */
	struct task_list *list;
	uint8_t bytes[TASK_STRUCT_BYTES_MAX]; /* of the task that was read last */
};

static bool reader_end(struct reader *reader, enum task_list_end end)
{
	reader->list->end = end;
	return false;
}

/* Reads the task at `address`, which is new, into reader->bytes and the list. signal: its process's; 0: any. */
static bool task_add(struct reader *reader, uint64_t address, uint64_t signal)
{
	const struct task_list_layout *layout = reader->layout;
	struct listed_task task;

	if (reader->list->tasks->len == TASK_LIST_MAX)
		return reader_end(reader, TASK_LIST_LIMIT);
	if (!struct_read(layout, reader->walk, address, reader->bytes) ||
	    !listed_task_decode(layout, reader->tasks, reader->bytes, address, &task) || task.task.tid == 0 ||
	    (signal != 0 && word_at(reader->bytes, layout->signal) != signal) ||
	    !g_hash_table_add(reader->seen, GSIZE_TO_POINTER(address)))
		return reader_end(reader, TASK_LIST_BROKEN);
	g_array_append_val(reader->list->tasks, task);
	return true;
}

/* The other threads of the process that was read last, with its first thread at `leader`. */
static void threads_add(struct reader *reader, uint64_t leader)
{
	const struct task_list_layout *layout = reader->layout;
	const uint64_t signal = word_at(reader->bytes, layout->signal), head = signal + layout->thread_head;
	const struct link own = link_at(reader->bytes, layout->thread_node);
	struct link link = own;
	bool skipped = false;

	if (signal == 0 || (own.next == head && own.prev == head))
		return;
	if (!page_walk_read_kernel(reader->walk, (gva_t){head}, &link, sizeof(link)))
		reader_end(reader, TASK_LIST_BROKEN);
	while (reader->list->end == TASK_LIST_WHOLE && link.next != head) {
		const uint64_t address = link.next - layout->thread_node;

		if (address == leader && !skipped) {
			skipped = true;
			link = own;
		} else if (task_add(reader, address, signal)) {
			link = link_at(reader->bytes, layout->thread_node);
		}
	}
}

/* A thread list that is broken does not end that of the processes. */
static void processes_add(struct reader *reader)
{
	const uint64_t offset = reader->layout->tasks, head = reader->layout->init_task + offset;
	enum task_list_end end = TASK_LIST_WHOLE;
	struct link link;

	reader->list->end = TASK_LIST_WHOLE;
	if (!page_walk_read_kernel(reader->walk, (gva_t){head}, &link, sizeof(link)))
		reader_end(reader, TASK_LIST_BROKEN);
	while (reader->list->end == TASK_LIST_WHOLE && link.next != head) {
		const uint64_t address = link.next - offset;

		if (!task_add(reader, address, 0))
			return;
		link = link_at(reader->bytes, (uint32_t)offset);
		threads_add(reader, address);
		if (reader->list->end == TASK_LIST_LIMIT)
			return;
		end = MAX(end, reader->list->end);
		reader->list->end = TASK_LIST_WHOLE;
	}
	reader->list->end = MAX(end, reader->list->end);
}

void task_list_read(const struct task_list_layout *layout, const struct task_layout *tasks, struct page_walk *walk,
                    struct task_list *list)
{
	g_autofree struct reader *reader = g_new(struct reader, 1);

	list->tasks = g_array_new(FALSE, FALSE, sizeof(struct listed_task));
	for (unsigned i = 0; i < READS_MAX; i++) {
		g_array_set_size(list->tasks, 0);
		reader->layout = layout;
		reader->tasks = tasks;
		reader->walk = walk;
		reader->list = list;
		reader->seen = g_hash_table_new(NULL, NULL);
		processes_add(reader);
		g_hash_table_unref(reader->seen);
		if (list->end != TASK_LIST_BROKEN)
			return;
	}
}

/* ---- what it waits for ---- */

bool task_only_waits(const struct task_list_layout *layout, uint64_t ip)
{
	const uint64_t *waits = layout->waits;

	return (ip >= waits[0] && ip < waits[1]) || (ip >= waits[2] && ip < waits[3]);
}

bool task_only_schedules(const struct task_list_layout *layout, uint64_t ip)
{
	for (unsigned i = 0; i < layout->n_locks; i++)
		if (ip >= layout->locks[i].begin && ip < layout->locks[i].end)
			return false;
	return task_only_waits(layout, ip);
}

uint64_t task_wait_channel(const struct task_list_layout *layout, const uint64_t *chain, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (chain[i] < (uint64_t)PERF_CONTEXT_MAX && !task_only_waits(layout, chain[i]))
			return chain[i];
	return 0;
}
