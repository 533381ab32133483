// SPDX-License-Identifier: BSD-2-Clause
/* Where a kernel puts the code of a loadable module (Linux, kernel/module/main.c, layout_sections). */
#include <elf.h>

#include "lib/symbol/image_priv.h"

#define PAGE_BYTES UINT64_C(4096)
#define CODE (SHF_ALLOC | SHF_EXECINSTR)
#define CODE_BYTES_MAX (UINT64_C(1) << 30)

static uint64_t aligned(uint64_t offset, uint64_t alignment)
{
	return (offset + alignment - 1) / alignment * alignment;
}

static bool is_init(const struct image *image, const Elf64_Shdr *section)
{
	const char *name = span_string(image->section_names, section->sh_name);

	return name && g_str_has_prefix(name, ".init");
}

/*
 * In the order of their headers, each aligned as it wants to be, from `start` on. Returns where they end, 0 when they
 * are more than a module can be.
 */
static uint64_t part_lay_out(struct image *image, bool init, uint64_t start)
{
	uint64_t end = start;

	for (size_t i = 0; i < image->n_sections; i++) {
		Elf64_Shdr *section = &image->sections[i];

		if ((section->sh_flags & CODE) != CODE || is_init(image, section) != init)
			continue;
		if (section->sh_addralign > PAGE_BYTES || section->sh_size > CODE_BYTES_MAX)
			return 0;
		section->sh_addr = aligned(end, MAX(section->sh_addralign, 1));
		end = section->sh_addr + section->sh_size;
		if (end > CODE_BYTES_MAX)
			return 0;
	}
	return end;
}

static void segment_add(struct image *image, uint64_t start, uint64_t end)
{
	if (end > start)
		image->segments[image->n_segments++] = (struct image_segment){.gpa = start,
		                                                              .gva = start,
		                                                              .file_offset = start,
		                                                              .memory_bytes = end - start,
		                                                              .flags = PF_R | PF_X};
}

bool image_lay_out_module(struct image *image, GError **error)
{
	uint64_t code_end = part_lay_out(image, false, 0), init = aligned(code_end, PAGE_BYTES);
	uint64_t init_end = code_end != 0 ? part_lay_out(image, true, init) : 0;

	if (init_end == 0)
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "it has no code, or more than a loadable module can have");
	segment_add(image, 0, init);
	segment_add(image, init, aligned(init_end, PAGE_BYTES));
	for (size_t i = 0; i < image->n_sections; i++) {
		Elf64_Shdr *section = &image->sections[i];

		/* Addresses of data are never looked up. */
		if ((section->sh_flags & CODE) != CODE)
			section->sh_flags &= ~(uint64_t)SHF_ALLOC;
		if (section->sh_type == SHT_NOTE)
			image_walk_notes(image, section->sh_offset, section->sh_size, section->sh_addralign);
	}
	return true;
}
