// SPDX-License-Identifier: BSD-2-Clause
/*
 * What samples read in guest memory: page tables, the running task and its cgroup, its mappings and their files' names
 * and build-ids, frames of its stacks, and the kernel's modules with their symbols. An input is eight words, of
 * registers and where things are, and runs of bytes that are not zero: page number, offset and length, two bytes each,
 * and the bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/fake_modules.h"
#include "../support/fake_page_cache.h"
#include "fuzz_target.h"
#include "guest/elf_note.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/cgroup.h"
#include "linux/module_symbols.h"
#include "linux/os_linux.h"
#include "linux/task.h"
#include "linux/unwind_search.h"

#define READS_MAX 200000u /* VMAS_MAX mappings, five fields and five levels of page tables each, and their names */

struct fuzz_bytes {
	uint64_t cr3, area, mm, file, rip, rsp, rbp, flags;
};

static struct fake_guest fake;

static void memory_fill(const uint8_t *data, size_t size)
{
	uint16_t run[3];

	fake_guest_init(&fake);
	while (size >= sizeof(run)) {
		memcpy(run, data, sizeof(run));
		data += sizeof(run);
		size -= sizeof(run);
		size_t at = (size_t)run[0] * 4096 + run[1];

		if (run[2] > size || at > FAKE_RAM_BYTES || run[2] > FAKE_RAM_BYTES - at)
			return;
		memcpy(fake.ram + at, data, run[2]);
		data += run[2];
		size -= run[2];
	}
}

static bool mapping_read(const struct os_mapping *vma, void *data)
{
	struct page_walk *walk = data;
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	char buffer[OS_FILE_NAME_BYTES];
	const char *name = vma_file_name(&fake_tree_layout, walk, vma->file, buffer);

	if (name && strlen(name) >= OS_FILE_NAME_BYTES)
		abort();
	elf_build_id_read(walk, (gva_t){vma->start}, vma->end - vma->start, build_id);
	return true;
}

static void modules_read(uint64_t head, struct page_walk *walk)
{
	static struct module_table table;
	struct module_layout layout = fake_module_layout;

	layout.head = head;
	memset(&table, 0, sizeof(table));
	module_table_update(&table, &layout, walk, 1);
	for (unsigned i = 0; i < table.n_ranges; i++)
		if (module_table_find(&table, table.ranges[i].start) != &table.ranges[i] ||
		    (i > 0 && table.ranges[i - 1].start + table.ranges[i - 1].bytes > table.ranges[i].start))
			abort();
	if (table.n > 0)
		symtab_free(module_symbols_read(&layout, walk, &table.modules[0], MODULE_SYMBOLS_BYTES_MAX));
}

/* Of the file whose struct address_space is at `mapping`. */
static void pages_read(uint64_t mapping, uint64_t pages, struct page_walk *walk)
{
	static const uint64_t numbers[] = {0, 1, 63, 64, 4095, 4096, UINT64_C(1) << 40, UINT64_MAX};
	struct page_cache_layout layout = fake_cache_layout;
	uint8_t page[PAGE_CACHE_PAGE_BYTES];
	struct page_cache cache;
	uint64_t bytes;

	layout.pages = pages;
	if (!page_cache_open(&cache, &layout, walk, mapping, &bytes))
		return;
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		page_cache_read(&cache, numbers[i], page);
}

/* Of the task at `address`, and of a directory at `node`. */
static void cgroups_read(uint64_t address, uint64_t node, struct page_walk *walk)
{
	static const struct cgroup_layout layout = {
		.task_cgroups = 0x40, .set_default = 8, .node = 16, .node_parent = 8, .node_name = 16, .node_id = 24};
	const struct task task = {.address = address};
	struct os_group cgroup = {.node = node};
	char buffer[OS_GROUP_PATH_BYTES];

	for (unsigned i = 0; i < 2; i++) {
		const char *path = cgroup_path(&layout, walk, &cgroup, buffer);

		if (path && (path[0] != '/' || strlen(path) >= OS_GROUP_PATH_BYTES))
			abort();
		if (!cgroup_read(&layout, walk, &task, &cgroup))
			break;
	}
}

/* The stack pointer of a program with functions of 256 bytes that may be called from anywhere. */
static void user_search(const struct fuzz_bytes *input, struct page_walk *walk)
{
	static const struct cfi_row rows[] = {{0, 0}, {0xf0, CFI_NONE}, {0x100, 0}, {0x1f0, CFI_NONE}, {0x200, 2}};
	static const struct cfi_cell cells[] = {{CFI_CFA, CFI_VALUE, CFI_SP, 2, 8, 0},
	                                        {CFI_RETURN, CFI_MEMORY, CFI_CFA, 0, -8, 0},
	                                        {CFI_CFA, CFI_VALUE, CFI_SP, 2, 8, 0},
	                                        {CFI_RETURN, CFI_UNDEFINED, 0, 0, 0, 0}};
	static const struct cfi_table table = {.rows = rows, .cells = cells, .n_rows = 5, .n_cells = 4};
	const uint64_t start = input->rip & ~UINT64_C(0xfff);
	const struct user_code code = {.n = 1, .ranges = {{start, start + 0x1000, 0, &table}}};
	const struct unwind_config config = {
		.system = &linux_unwinding, .user = true, .depth = UNWIND_DEPTH_MAX, .code = &code};
	const struct unwind_stacks stacks = {.user = input->rsp};
	struct guest_regs regs = {.rip = input->rip, .rbp = input->rbp, .cpl = 3, .all = true, .valid = true};

	if (start <= UINT64_MAX - 0x1000 && unwind_search_user(&config, &stacks, walk, &regs) != UNWIND_SEARCH_FOUND &&
	    regs.rsp != 0)
		abort();
}

/* The same bytes as page tables, stack and code of arm64. */
static void arm64_unwind(const struct fuzz_bytes *input)
{
	const struct guest_regs regs = {.processor = GUEST_ARM64,
	                                .valid = true,
	                                .arm64 = {.pc = input->rip,
	                                          .sp = input->rsp,
	                                          .fp = input->rbp,
	                                          .lr = input->area,
	                                          .el = input->flags & 1,
	                                          .tables = {.ttbr0 = input->cr3,
	                                                     .ttbr1 = input->mm,
	                                                     .tcr = input->flags >> 8,
	                                                     .mmu = (input->flags & 2) == 0}}};
	const struct unwind_config config = {.system = &linux_unwinding, .user = true, .depth = UNWIND_DEPTH_MAX};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	if (unwind(&config, &fake.guest, &regs, NULL, chain, &end) > UNWIND_CHAIN_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct task_layout tasks = {
		.this_cpu_off = 0, .current_task = 8, .pid = 4, .comm = 0x20, .start_time = 0x10};
	struct vma_layout list = fake_tree_layout;
	struct fuzz_bytes input;

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	memory_fill(data + sizeof(input), size - sizeof(input));
	const struct guest_regs regs = {.rip = input.rip,
	                                .rsp = input.rsp,
	                                .rbp = input.rbp,
	                                .cr3 = input.cr3,
	                                .cpl = input.flags & 1 ? 3 : 0,
	                                .la57 = input.flags & 2,
	                                .valid = true};
	const struct unwind_config frames = {.system = &linux_unwinding, .user = true, .depth = UNWIND_DEPTH_MAX};
	const struct task_cpu cpu = {.area = input.area};
	uint64_t chain[UNWIND_CHAIN_MAX];
	struct page_walk walk;
	struct task task;
	enum unwind_end end;

	list.has_tree = false;
	list.mm_list = 0x80;
	list.next = 0x10;
	page_walk_init(&walk, &fake.guest, input.cr3, regs.la57);
	vma_each(&fake_tree_layout, &walk, input.mm, mapping_read, &walk);
	vma_each(&list, &walk, input.mm, mapping_read, &walk);
	mapping_read(&(struct os_mapping){.start = input.area, .end = UINT64_MAX, .file = input.file}, &walk);
	task_read(&tasks, &cpu, &fake.guest, &regs, &walk, &task);
	if (unwind(&frames, &fake.guest, &regs, NULL, chain, &end) > UNWIND_CHAIN_MAX || fake.reads > READS_MAX * 10)
		abort();
	cgroups_read(input.area, input.file, &walk);
	modules_read(input.mm, &walk);
	pages_read(input.file, input.area, &walk);
	arm64_unwind(&input);
	user_search(&input, &walk);
	return 0;
}
