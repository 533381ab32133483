// SPDX-License-Identifier: BSD-2-Clause
/* Dynamically linked programs and libraries made by code: an interpreter, the libraries they need, where those are. */
#ifndef VPROF_TEST_SUPPORT_DYNAMIC_ELF_H
#define VPROF_TEST_SUPPORT_DYNAMIC_ELF_H

#include <elf.h>
#include <glib.h>
#include <string.h>

#include "lib/record/arch.h"

struct dynamic_elf {
	const char *interpreter;   /* NULL: none */
	const char *const *needed; /* up to NULL; NULL: static */
	const char *rpath, *runpath;
};

#define DYNAMIC_ELF_GVA 0x400000u

static inline void dynamic_elf_entry(GArray *entries, GString *strings, gint64 tag, const char *text)
{
	const Elf64_Dyn entry = {.d_tag = tag, .d_un.d_val = strings->len};

	if (!text)
		return;
	g_array_append_val(entries, entry);
	g_string_append_len(strings, text, (gssize)strlen(text) + 1);
}

static inline void dynamic_elf_number(GArray *entries, gint64 tag, guint64 number)
{
	const Elf64_Dyn entry = {.d_tag = tag, .d_un.d_val = number};

	g_array_append_val(entries, entry);
}

static inline void dynamic_elf_segment(Elf64_Phdr *segment, guint32 type, guint64 offset, guint64 bytes)
{
	*segment = (Elf64_Phdr){
		.p_type = type,
		.p_offset = offset,
		.p_vaddr = DYNAMIC_ELF_GVA + offset,
		.p_filesz = bytes,
		.p_memsz = bytes,
	};
}

/* header, program headers, strings, dynamic section */
static inline GByteArray *dynamic_elf_build(const struct dynamic_elf *elf)
{
	enum { LOAD, INTERP, DYNAMIC, SEGMENTS };
	const guint64 at = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);
	GArray *entries = g_array_new(FALSE, TRUE, sizeof(Elf64_Dyn));
	GString *strings = g_string_new_len("", 1);
	GByteArray *file = g_byte_array_new();
	Elf64_Phdr segments[SEGMENTS] = {0};
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = arch_elf(arch_here()),
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = SEGMENTS,
	};

	if (elf->interpreter) {
		dynamic_elf_segment(&segments[INTERP], PT_INTERP, at + strings->len, strlen(elf->interpreter) + 1);
		g_string_append_len(strings, elf->interpreter, (gssize)strlen(elf->interpreter) + 1);
	}
	for (const char *const *name = elf->needed; name && *name; name++)
		dynamic_elf_entry(entries, strings, DT_NEEDED, *name);
	dynamic_elf_entry(entries, strings, DT_RPATH, elf->rpath);
	dynamic_elf_entry(entries, strings, DT_RUNPATH, elf->runpath);
	dynamic_elf_number(entries, DT_STRTAB, DYNAMIC_ELF_GVA + at);
	dynamic_elf_number(entries, DT_STRSZ, strings->len);
	dynamic_elf_number(entries, DT_NULL, 0);
	if (elf->needed)
		dynamic_elf_segment(&segments[DYNAMIC], PT_DYNAMIC, at + strings->len,
		                    entries->len * sizeof(Elf64_Dyn));
	dynamic_elf_segment(&segments[LOAD], PT_LOAD, 0, at + strings->len);
	g_byte_array_append(file, (const guint8 *)&header, sizeof(header));
	g_byte_array_append(file, (const guint8 *)segments, sizeof(segments));
	g_byte_array_append(file, (const guint8 *)strings->str, (guint)strings->len);
	g_byte_array_append(file, (const guint8 *)entries->data, entries->len * (guint)sizeof(Elf64_Dyn));
	g_string_free(strings, TRUE);
	g_array_unref(entries);
	return file;
}

#endif
