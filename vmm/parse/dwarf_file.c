// SPDX-License-Identifier: BSD-2-Clause
/* libdw checks the bytes. */
#include "parse/dwarf_file.h"

#include <glib.h>

struct dwarf_file {
	Elf *elf;
	Dwarf *dwarf;
};

struct dwarf_file *dwarf_file_new(uint8_t *bytes, size_t n)
{
	struct dwarf_file *file = g_new0(struct dwarf_file, 1);

	elf_version(EV_CURRENT);
	file->elf = elf_memory((char *)bytes, n);
	if (file->elf)
		file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (file->dwarf)
		return file;
	dwarf_file_free(file);
	return NULL;
}

void dwarf_file_free(struct dwarf_file *file)
{
	if (!file)
		return;
	dwarf_end(file->dwarf);
	elf_end(file->elf);
	g_free(file);
}

Dwarf *dwarf_file_dwarf(struct dwarf_file *file)
{
	return file->dwarf;
}
