// SPDX-License-Identifier: BSD-2-Clause
/* By libdw, which checks the bytes. */
#include "lib/symbol/source_lines.h"

#include <elfutils/libdw.h>
#include <glib.h>

struct source_lines {
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_Die unit; /* the one that was found last */
	bool has_unit;
};

struct source_lines *source_lines_new(const struct image *image)
{
	struct source_lines *lines = g_new0(struct source_lines, 1);
	size_t n;
	const uint8_t *bytes = image_bytes(image, &n);

	elf_version(EV_CURRENT);
	/* Not written to: the byte order is this machine's, and nothing asks for a change. */
	lines->elf = elf_memory((char *)(uintptr_t)bytes, n);
	if (lines->elf)
		lines->dwarf = dwarf_begin_elf(lines->elf, DWARF_C_READ, NULL);
	if (lines->dwarf)
		return lines;
	source_lines_free(lines);
	return NULL;
}

void source_lines_free(struct source_lines *lines)
{
	if (!lines)
		return;
	dwarf_end(lines->dwarf);
	elf_end(lines->elf);
	g_free(lines);
}

/* By the units themselves where .debug_aranges, which compilers may leave out, does not have it. */
static bool unit_find(struct source_lines *lines, Dwarf_Addr address)
{
	Dwarf_CU *unit = NULL;

	if (lines->has_unit && dwarf_haspc(&lines->unit, address) == 1)
		return true;
	lines->has_unit = dwarf_addrdie(lines->dwarf, address, &lines->unit) != NULL;
	while (!lines->has_unit && dwarf_get_units(lines->dwarf, unit, &unit, NULL, NULL, &lines->unit, NULL) == 0)
		lines->has_unit = dwarf_haspc(&lines->unit, address) == 1;
	return lines->has_unit;
}

bool source_lines_find(struct source_lines *lines, uint64_t address, const char **file, int *line)
{
	Dwarf_Line *found = unit_find(lines, address) ? dwarf_getsrc_die(&lines->unit, address) : NULL;
	int number;
	const char *name = found ? dwarf_linesrc(found, NULL, NULL) : NULL;

	if (!name || dwarf_lineno(found, &number) != 0 || number <= 0)
		return false;
	*file = name;
	*line = number;
	return true;
}
