// SPDX-License-Identifier: BSD-2-Clause
#include "linux/task.h"

#include <string.h>

#include "guest/processor.h"
#include "linux/guest_text.h"
#include "linux/processor.h"

G_DEFINE_QUARK(vprof_task_error, task_error)

#define PID_MAX (UINT32_C(1) << 22) /* PID_MAX_LIMIT of linux/threads.h */

static bool layout_members(struct task_layout *layout, const struct types *types, GError **error)
{
	const struct types_member members[] = {
		{"task_struct", "pid", 4, &layout->pid},
		{"task_struct", "tgid", 4, &layout->tgid},
		{"task_struct", "comm", TASK_COMM_BYTES, &layout->comm},
		{"task_struct", "start_time", 8, &layout->start_time},
		{"task_struct", "exit_state", 4, &layout->exit_state},
		{"task_struct", "real_parent", 8, &layout->real_parent},
		{"task_struct", "mm", 8, &layout->mm},
	};

	return types_find(types, members, G_N_ELEMENTS(members), error);
}

bool task_layout_load(const struct image *image, const struct symtab *symtab, const struct types *types,
                      struct task_layout *layout, GError **error)
{
	struct task_layout loaded = {0};

	if (!image_is_linux(image)) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE, "%s is no Linux kernel", image_path(image));
		return false;
	}
	if (!layout_members(&loaded, types, error) ||
	    !linux_processor_of_image(image)->tasks_load(&loaded, symtab, types, error))
		return false;
	types_has(types, "mm_struct", "pgd", 8, &loaded.mm_pgd);
	types_has(types, "task_struct", "self_exec_id", TYPES_PLACE, &loaded.self_exec_id);
	*layout = loaded;
	return true;
}

static bool kernel_read(struct page_walk *walk, uint64_t from, void *to, size_t bytes)
{
	return page_walk_read_kernel(walk, (gva_t){from}, to, bytes);
}

static bool is_in_table(struct page_walk *walk, const struct task_layout *layout, const struct task_cpu *cpu)
{
	uint64_t areas[GUEST_VCPUS_MAX];

	if (cpu->area == 0 || !kernel_read(walk, layout->offsets, areas, sizeof(areas)))
		return false;
	for (size_t i = 0; i < G_N_ELEMENTS(areas); i++)
		if (areas[i] == cpu->area)
			return true;
	return false;
}

/* Walks by the tables of these registers if they have the per-CPU area. */
static bool area_open(struct page_walk *walk, const struct task_layout *layout, const struct task_cpu *cpu,
                      struct guest *guest, const struct guest_regs *regs)
{
	uint64_t area;

	page_walk_init_regs(walk, guest, regs);
	if (layout->offsets != 0)
		return is_in_table(walk, layout, cpu);
	return kernel_read(walk, cpu->area + layout->this_cpu_off, &area, sizeof(area)) && area == cpu->area;
}

/* The kernel itself uses no control characters in names, but prctl(PR_SET_NAME) accepts any byte. */
static bool comm_clean(char comm[TASK_COMM_BYTES])
{
	size_t length = strnlen(comm, TASK_COMM_BYTES);

	if (length == TASK_COMM_BYTES)
		return false;
	guest_text_clean(comm, length);
	memset(comm + length, 0, TASK_COMM_BYTES - length);
	return true;
}

bool task_comm_read(struct page_walk *walk, gva_t at, char comm[TASK_COMM_BYTES])
{
	if (!kernel_read(walk, at.value, comm, TASK_COMM_BYTES))
		return false;
	comm[TASK_COMM_BYTES - 1] = '\0';
	return comm_clean(comm);
}

/* Uses the page tables of the vCPU, or the kernel's own. */
static bool tables_open(struct page_walk *walk, const struct task_layout *layout, const struct task_cpu *cpu,
                        struct guest *guest, const struct guest_regs *regs)
{
	struct guest_regs kernels = *regs;

	return area_open(walk, layout, cpu, guest, regs) ||
	       (processor_of(regs->processor)->memory->kernels(guest, layout->kernel_tables, &kernels) &&
	        area_open(walk, layout, cpu, guest, &kernels));
}

/* False for what is no task. */
static bool settle(struct task *task)
{
	return task->pid <= PID_MAX && task->tid <= PID_MAX && (task->pid == 0) == (task->tid == 0) &&
	       comm_clean(task->comm);
}

static bool struct_read(struct page_walk *walk, const struct task_layout *layout, uint64_t address, struct task *task)
{
	struct task read = {.address = address};

	if (!kernel_read(walk, address + layout->tgid, &read.pid, sizeof(read.pid)) ||
	    !kernel_read(walk, address + layout->pid, &read.tid, sizeof(read.tid)) ||
	    !kernel_read(walk, address + layout->start_time, &read.start_time, sizeof(read.start_time)) ||
	    !kernel_read(walk, address + layout->mm, &read.mm, sizeof(read.mm)) ||
	    !kernel_read(walk, address + layout->comm, read.comm, sizeof(read.comm)) || !settle(&read))
		return false;
	*task = read;
	return true;
}

bool task_decode(const struct task_layout *layout, const uint8_t *bytes, uint64_t address, struct task *task)
{
	struct task read = {.address = address};

	memcpy(&read.pid, bytes + layout->tgid, sizeof(read.pid));
	memcpy(&read.tid, bytes + layout->pid, sizeof(read.tid));
	memcpy(&read.start_time, bytes + layout->start_time, sizeof(read.start_time));
	memcpy(&read.mm, bytes + layout->mm, sizeof(read.mm));
	memcpy(read.comm, bytes + layout->comm, sizeof(read.comm));
	if (!settle(&read))
		return false;
	*task = read;
	return true;
}

bool task_read(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
               const struct guest_regs *regs, struct page_walk *walk, struct task *task)
{
	uint64_t address;

	return tables_open(walk, layout, cpu, guest, regs) &&
	       kernel_read(walk, cpu->area + layout->current_task, &address, sizeof(address)) &&
	       struct_read(walk, layout, address, task);
}

bool task_read_at(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
                  const struct guest_regs *regs, uint64_t address, struct page_walk *walk, struct task *task)
{
	return tables_open(walk, layout, cpu, guest, regs) && struct_read(walk, layout, address, task);
}

bool task_read_parent(const struct task_layout *layout, struct page_walk *walk, const struct task *task,
                      struct task *parent)
{
	uint64_t address;

	return kernel_read(walk, task->address + layout->real_parent, &address, sizeof(address)) &&
	       struct_read(walk, layout, address, parent);
}

bool task_parent_read(const struct task_layout *layout, struct page_walk *walk, const struct task *task,
                      struct task_parent *parent)
{
	struct task_parent read;
	uint64_t address;

	if (!kernel_read(walk, task->address + layout->real_parent, &address, sizeof(address)) ||
	    !kernel_read(walk, address + layout->tgid, &read.pid, sizeof(read.pid)) ||
	    !kernel_read(walk, address + layout->pid, &read.tid, sizeof(read.tid)) || read.pid > PID_MAX ||
	    read.tid > PID_MAX)
		return false;
	*parent = read;
	return true;
}

bool task_walk_open(const struct task_layout *layout, const struct page_walk *kernel, const struct task *task,
                    struct page_walk *walk)
{
	uint64_t pgd;
	gpa_t tables;

	*walk = *kernel;
	if (task->mm == 0 || layout->mm_pgd == 0 || !kernel_read(walk, task->mm + layout->mm_pgd, &pgd, sizeof(pgd)) ||
	    pgd >> 63 == 0 || !page_walk_translate(walk, (gva_t){pgd}, &tables))
		return false;
	processor_of(walk->tables.processor)->memory->enter(walk, tables);
	return true;
}

uint64_t task_first_area(const struct task_layout *layout, struct page_walk *walk)
{
	uint64_t area;

	return layout->offsets != 0 && kernel_read(walk, layout->offsets, &area, sizeof(area)) ? area : 0;
}

/* Of its 64 bits, 32 before Linux 5.6, the low ones count. */
uint32_t task_read_execs(const struct task_layout *layout, struct page_walk *walk, const struct task *task)
{
	uint32_t execs = 0;

	if (layout->self_exec_id == 0 ||
	    !kernel_read(walk, task->address + layout->self_exec_id, &execs, sizeof(execs)))
		return 0;
	return execs;
}

bool task_has_ended(const struct task_layout *layout, struct page_walk *walk, const struct task *task)
{
	uint64_t start_time;
	uint32_t tid, exit_state;

	/* Task structures come out of the direct map, which stays. */
	if (!kernel_read(walk, task->address + layout->start_time, &start_time, sizeof(start_time)) ||
	    !kernel_read(walk, task->address + layout->pid, &tid, sizeof(tid)) ||
	    !kernel_read(walk, task->address + layout->exit_state, &exit_state, sizeof(exit_state)))
		return true;
	return start_time != task->start_time || tid != task->tid || exit_state != 0;
}
