// SPDX-License-Identifier: BSD-2-Clause
#include "linux/file_code.h"

#include <string.h>

#include "guest/guest_debug.h"
#include "guest/processor.h"

#define PAGE_MASK UINT64_C(0xfff)

static bool word_read(struct page_walk *walk, uint64_t from, uint64_t *word)
{
	return page_walk_read_kernel(walk, (gva_t){from}, word, sizeof(*word));
}

const char *file_code_why_not(const struct kernel_layout *kernel)
{
	return kernel->has_page_cache && kernel->page_cache.has_states && kernel->has_mappings && kernel->has_areas
	               ? NULL
	               : "its kernel does not say how it keeps files in memory (CONFIG_DEBUG_INFO_BTF)";
}

bool file_code_open(struct file_code *self, const struct kernel_layout *kernel, struct page_walk *walk, uint64_t file,
                    uint64_t offset)
{
	const struct page_cache_layout *pages = &kernel->page_cache;
	struct file_code found = {.kernel = &kernel->os, .offset = offset};
	uint64_t bdi;

	if (!word_read(walk, file + kernel->mappings.file_mapping, &found.mapping) ||
	    !word_read(walk, found.mapping + pages->mapping_host, &found.inode) ||
	    !word_read(walk, found.inode + pages->inode_number, &found.number) ||
	    !word_read(walk, found.inode + pages->inode_super, &found.super) ||
	    !word_read(walk, found.super + pages->super_bdi, &bdi))
		return false;
	found.is_kept = bdi != pages->no_bdi;
	*self = found;
	return true;
}

/* The address_space may have become another file's. */
static bool is_still_there(const struct file_code *self, struct page_walk *walk)
{
	const struct page_cache_layout *pages = &layout_of(self->kernel)->page_cache;
	uint64_t inode, number, super;

	return word_read(walk, self->mapping + pages->mapping_host, &inode) && inode == self->inode &&
	       word_read(walk, inode + pages->inode_number, &number) && number == self->number &&
	       word_read(walk, inode + pages->inode_super, &super) && super == self->super;
}

bool file_code_read(struct file_code *self, struct page_walk *walk)
{
	struct guest *guest = walk->guest;
	const struct processor_code *of = processor_of(walk->tables.processor)->code;
	const size_t n = MIN(sizeof(self->code), PAGE_CACHE_PAGE_BYTES - (self->offset & PAGE_MASK));
	gpa_t at = {0};
	const enum page_state state = file_code_find(self, walk, &at);

	if ((state != PAGE_DIRTY && state != PAGE_CLEAN) || !guest->ops->memory_read(guest, at, self->code, n))
		return false;
	guest->debug->unpatch_file(guest, self->mapping, self->offset, self->code, n);
	self->n = of->length(self->code, n);
	return true;
}

enum page_state file_code_find(const struct file_code *self, struct page_walk *walk, gpa_t *at)
{
	struct page_cache cache;
	uint64_t bytes;
	gpa_t page;

	if (!is_still_there(self, walk) ||
	    !page_cache_open(&cache, &layout_of(self->kernel)->page_cache, walk, self->mapping, &bytes) ||
	    self->offset >= bytes)
		return PAGE_ABSENT;
	const enum page_state state = page_cache_find(&cache, self->offset / PAGE_CACHE_PAGE_BYTES, &page);
	if (state == PAGE_DIRTY || state == PAGE_CLEAN)
		at->value = page.value + (self->offset & PAGE_MASK);
	return state == PAGE_DIRTY && !self->is_kept ? PAGE_CLEAN : state;
}

/* ---- in a process ---- */

struct search {
	const struct file_code *code;
	struct page_walk *walk;
	uint64_t address;
	bool found;
};

static bool search_take(const struct os_mapping *vma, void *data)
{
	struct search *search = data;
	const struct file_code *code = search->code;
	uint64_t mapping;

	if (search->address - vma->start >= vma->end - vma->start)
		return true;
	search->found = vma->file != 0 &&
	                word_read(search->walk, vma->file + layout_of(code->kernel)->mappings.file_mapping, &mapping) &&
	                mapping == code->mapping && vma->file_offset + (search->address - vma->start) == code->offset;
	return false;
}

/* A vCPU has its number as its APIC ID. */
static uint64_t area_of(const struct kernel_layout *kernel, struct page_walk *walk, unsigned vcpu)
{
	struct os_area areas[GUEST_VCPUS_MAX];
	const size_t n = cpu_areas_read(&kernel->areas, walk, areas, GUEST_VCPUS_MAX);

	for (size_t i = 0; i < n; i++)
		if (areas[i].apic_id == vcpu)
			return areas[i].area;
	return 0;
}

bool file_code_is_mapped(const struct file_code *self, struct guest *guest, unsigned vcpu,
                         const struct guest_regs *regs, uint64_t address)
{
	const struct kernel_layout *kernel = layout_of(self->kernel);
	struct page_walk walk;
	struct search search = {.code = self, .walk = &walk, .address = address};
	struct task task;

	file_code_walk(guest, regs, &walk);
	const struct task_cpu cpu = {.area = area_of(kernel, &walk, vcpu)};
	if (task_read(&kernel->tasks, &cpu, guest, regs, &walk, &task) && task.mm != 0)
		vma_each(&kernel->mappings, &walk, task.mm, search_take, &search);
	return search.found;
}
