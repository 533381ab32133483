// SPDX-License-Identifier: BSD-2-Clause
/* An ELF file in memory, opened by libdw. Only where there is libdw. */
#ifndef VPROF_PARSE_DWARF_FILE_H
#define VPROF_PARSE_DWARF_FILE_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_file;

/*
 * `bytes` are borrowed and must outlive the result. They are written to: libelf unpacks a compressed section by
 * changing its header where the file is (elf_compress.c). NULL when there is no debug information.
 */
struct dwarf_file *dwarf_file_new(uint8_t *bytes, size_t n);
/* NULL is allowed. */
void dwarf_file_free(struct dwarf_file *file);
/* Ends with `file`. */
Dwarf *dwarf_file_dwarf(struct dwarf_file *file);

#endif
