// SPDX-License-Identifier: BSD-2-Clause
#include "reading/kernel_place.h"

#include <string.h>

#define MAPPING_PREFIX "[kernel.kallsyms]"
#define SLIDE_ALIGNMENT (UINT64_C(1) << 12) /* CONFIG_PHYSICAL_ALIGN and EFI_KIMG_ALIGN are multiples of it */

/* A slide is below these. */
static const uint64_t slide_max[] = {
	[ARCH_X86_64] = UINT64_C(1) << 30, /* Linux, arch/x86/include/asm/page_64_types.h, KERNEL_IMAGE_SIZE */
	[ARCH_ARM64] = UINT64_C(1) << 47,  /* Linux, arch/arm64/include/asm/memory.h: KIMAGE_VADDR to VMEMMAP_START */
};

void kernel_place_take(struct kernel_place *place, const struct perf_event_header *record, size_t bytes)
{
	const size_t prefix = strlen(MAPPING_PREFIX);
	struct record_mmap mmap;

	if ((record->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_KERNEL ||
	    !record_mmap_decode(record, bytes, &mmap) || strncmp(mmap.file_name.raw, MAPPING_PREFIX, prefix) != 0)
		return;
	size_t length = strlen(mmap.file_name.raw + prefix);

	if (length == 0 || length >= sizeof(place->symbol))
		return;
	place->moved |= place->symbol[0] != '\0' &&
	                (strcmp(place->symbol, mmap.file_name.raw + prefix) != 0 || place->address != mmap.page_offset);
	memcpy(place->symbol, mmap.file_name.raw + prefix, length + 1);
	place->address = mmap.page_offset;
}

bool kernel_place_slide(const struct kernel_place *place, enum arch arch, const struct symtab *symtab, uint64_t *slide)
{
	const struct symbol *symbol = place->symbol[0] != '\0' ? symtab_find_name(symtab, place->symbol) : NULL;
	uint64_t found = symbol && symbol->address >> 63 ? place->address - symbol->address : 0;

	if (found % SLIDE_ALIGNMENT != 0 || found >= slide_max[arch])
		return false;
	*slide = found;
	return true;
}
