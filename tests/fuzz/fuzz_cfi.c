// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call frame information, right or wrong, as .eh_frame and as .debug_frame, for both architectures; and the same bytes
 * as a table of rows. What a row names are registers.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/symbol/cfi.h"
#include "lib/symbol/x86/cfi_x86.h"

#define CODE UINT64_C(0x401000)
#define CODE_BYTES UINT64_C(0x10000)
#define LOOKUPS 256u

static void look_up(const void *block, size_t bytes)
{
	struct cfi_table table;
	uint32_t why;

	if (!cfi_table_open(block, bytes, &table))
		return;
	for (unsigned i = 0; i < LOOKUPS; i++) {
		const struct cfi_cell *cells = cfi_table_find(&table, 0x1000 + i * CODE_BYTES / LOOKUPS, &why);

		if (!cells && why != CFI_NONE && why != CFI_UNKNOWN)
			abort();
		if (cells && (cells[0].count == 0 || cells[0].count > CFI_CELLS_MAX || cells[0].base >= CFI_RIP))
			abort();
		for (unsigned k = 1; cells && k < cells[0].count; k++)
			if (cells[k].target >= CFI_REGISTERS || cells[k].how > CFI_MEMORY)
				abort();
	}
}

static void make(const struct cfi_arch *arch, const uint8_t *data, size_t size, bool second)
{
	const struct image_segment code = {
		.gva = CODE, .file_offset = 0x1000, .memory_bytes = CODE_BYTES, .flags = PF_R | PF_X};
	struct cfi_source source = {.arch = arch, .segments = &code, .n_segments = 1};
	struct cfi_statistics statistics;

	*(second ? &source.debug_frame : &source.eh_frame) = (struct cfi_section){data, size, CODE + CODE_BYTES};
	g_autoptr(GBytes) block = cfi_table_make(&source, &statistics);

	if (block)
		look_up(g_bytes_get_data(block, NULL), g_bytes_get_size(block));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree void *aligned = g_memdup2(data, size);

	make(&cfi_x86_64, data, size, false);
	make(&cfi_x86_64, data, size, true);
	make(&cfi_arm64, data, size, false);
	if (aligned)
		look_up(aligned, size);
	return 0;
}
