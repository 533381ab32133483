// SPDX-License-Identifier: BSD-2-Clause
#include "guest/task.h"

#include <string.h>

#include "guest/btf.h"
#include "guest/dwarf_member.h"
#include "guest/page_walk.h"
#include "lib/symbol/symtab.h"

G_DEFINE_QUARK(vprof_task_error, task_error)

#define PID_MAX (UINT32_C(1) << 22) /* PID_MAX_LIMIT of linux/threads.h */

/*
 * With page table isolation, a process has two top-level tables side by side; the user's, which lacks the kernel's
 * data, has this bit set (PTI_USER_PGTABLE_BIT of asm/pgtable.h).
 */
#define CR3_USER_TABLES (UINT64_C(1) << 12)

/* What the image says about its types. */
struct types {
	struct btf *btf;
	struct dwarf_types *dwarf; /* without BTF */
};

static bool types_open(struct types *types, const struct image *image, GError **error)
{
	size_t bytes;
	uint64_t address;
	const uint8_t *section = image_section(image, ".BTF", &bytes, &address);

	*types = (struct types){NULL, NULL};
	if (section != NULL) {
		types->btf = btf_new(section, bytes, error);
		return types->btf != NULL;
	}
	const uint8_t *elf = image_bytes(image, &bytes);

	types->dwarf = dwarf_types_new(elf, bytes);
	if (types->dwarf == NULL)
		g_set_error(error, TASK_ERROR, TASK_ERROR_TYPES,
		            "%s has neither BTF nor debug information; build Linux with CONFIG_DEBUG_INFO_BTF",
		            image_path(image));
	return types->dwarf != NULL;
}

static void types_close(struct types *types)
{
	btf_free(types->btf);
	dwarf_types_free(types->dwarf);
}

static bool types_member(const struct types *types, const char *structure, const char *member, uint32_t *offset,
                         GError **error)
{
	if (types->btf != NULL ? btf_member(types->btf, structure, member, offset)
	                       : dwarf_member(types->dwarf, structure, member, offset))
		return true;
	g_set_error(error, TASK_ERROR, TASK_ERROR_TYPES, "the kernel's %s has no struct %s with a member %s",
	            types->btf != NULL ? "BTF" : "debug information", structure, member);
	return false;
}

static bool layout_members(struct task_layout *layout, const struct types *types, GError **error)
{
	return types_member(types, "task_struct", "pid", &layout->pid, error) &&
	       types_member(types, "task_struct", "tgid", &layout->tgid, error) &&
	       types_member(types, "task_struct", "comm", &layout->comm, error) &&
	       types_member(types, "task_struct", "start_time", &layout->start_time, error);
}

static bool layout_symbols(struct task_layout *layout, const struct symtab *symtab, const struct types *types,
                           GError **error)
{
	const struct symbol *area = symtab_find_name(symtab, "this_cpu_off");
	const struct symbol *current_task = symtab_find_name(symtab, "current_task");
	const struct symbol *hot = current_task == NULL ? symtab_find_name(symtab, "pcpu_hot") : NULL;
	uint32_t offset = 0;

	if (area == NULL || (current_task == NULL && hot == NULL)) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE,
		            "the kernel has no symbols this_cpu_off and current_task or pcpu_hot; it needs CONFIG_SMP, "
		            "and CONFIG_KALLSYMS_ALL if the image is stripped");
		return false;
	}
	if (hot != NULL && !types_member(types, "pcpu_hot", "current_task", &offset, error))
		return false;
	layout->this_cpu_off = area->address;
	layout->current_task = (hot != NULL ? hot->address : current_task->address) + offset;
	return true;
}

bool task_layout_load(const struct image *image, struct task_layout *layout, GError **error)
{
	struct task_layout loaded = {0};
	struct symtab *symtab;
	struct types types;
	bool done;

	if (!image_is_linux(image)) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE, "%s is no Linux kernel", image_path(image));
		return false;
	}
	if (!types_open(&types, image, error))
		return false;
	symtab = symtab_load(image, error);
	done = symtab != NULL && layout_members(&loaded, &types, error) &&
	       layout_symbols(&loaded, symtab, &types, error);
	symtab_free(symtab);
	types_close(&types);
	if (done)
		*layout = loaded;
	return done;
}

static bool is_kernel_address(uint64_t address)
{
	return address >> 63;
}

static bool kernel_read(struct page_walk *walk, uint64_t from, void *to, size_t bytes)
{
	return is_kernel_address(from) && page_walk_read(walk, (gva_t){from}, to, bytes);
}

/* Walks by the tables of `cr3` if they have the per-CPU area. */
static bool area_open(struct page_walk *walk, const struct task_layout *layout, const struct task_cpu *cpu,
                      struct guest *guest, const struct guest_regs *regs, uint64_t cr3)
{
	uint64_t area;

	page_walk_init(walk, guest, cr3, regs->la57);
	return kernel_read(walk, cpu->area + layout->this_cpu_off, &area, sizeof(area)) && area == cpu->area;
}

/* The kernel puts no control characters into names, but prctl(PR_SET_NAME) takes any. */
static bool comm_clean(char comm[TASK_COMM_BYTES])
{
	size_t length = strnlen(comm, TASK_COMM_BYTES);

	if (length == TASK_COMM_BYTES)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)comm[i] < 0x20 || comm[i] == 0x7f)
			comm[i] = '?';
	memset(comm + length, 0, TASK_COMM_BYTES - length);
	return true;
}

bool task_read(const struct task_layout *layout, const struct task_cpu *cpu, struct guest *guest,
               const struct guest_regs *regs, struct task *task)
{
	struct page_walk walk;
	struct task read;

	if (!area_open(&walk, layout, cpu, guest, regs, regs->cr3) &&
	    (!(regs->cr3 & CR3_USER_TABLES) ||
	     !area_open(&walk, layout, cpu, guest, regs, regs->cr3 & ~CR3_USER_TABLES)))
		return false;
	if (!kernel_read(&walk, cpu->area + layout->current_task, &read.address, sizeof(read.address)) ||
	    !kernel_read(&walk, read.address + layout->tgid, &read.pid, sizeof(read.pid)) ||
	    !kernel_read(&walk, read.address + layout->pid, &read.tid, sizeof(read.tid)) ||
	    !kernel_read(&walk, read.address + layout->start_time, &read.start_time, sizeof(read.start_time)) ||
	    !kernel_read(&walk, read.address + layout->comm, read.comm, sizeof(read.comm)))
		return false;
	if (read.pid > PID_MAX || read.tid > PID_MAX || (read.pid == 0) != (read.tid == 0) || !comm_clean(read.comm))
		return false;
	*task = read;
	return true;
}

static bool same_task(const struct task *a, const struct task *b)
{
	return a->address == b->address && a->start_time == b->start_time && a->tid == b->tid;
}

/* A task_struct is a few KiB long and aligned to 64 bytes. */
static size_t bucket_of(const struct task *task)
{
	uint64_t mixed = (task->address >> 6 ^ task->start_time) * UINT64_C(0x9e3779b97f4a7c15);

	return mixed >> 32 & (TASK_CACHE_BUCKETS - 1);
}

bool task_cache_has(const struct task_cache *cache, const struct task *task)
{
	const struct task *bucket = cache->tasks[bucket_of(task)];

	for (size_t i = 0; i < TASK_CACHE_WAYS; i++)
		if (same_task(&bucket[i], task))
			return bucket[i].pid == task->pid && memcmp(bucket[i].comm, task->comm, TASK_COMM_BYTES) == 0;
	return false;
}

void task_cache_put(struct task_cache *cache, const struct task *task)
{
	struct task *bucket = cache->tasks[bucket_of(task)];
	size_t i = 0;

	while (i + 1 < TASK_CACHE_WAYS && !same_task(&bucket[i], task))
		i++;
	memmove(bucket + 1, bucket, i * sizeof(*bucket));
	bucket[0] = *task;
}
