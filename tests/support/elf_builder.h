// SPDX-License-Identifier: BSD-2-Clause
/*
 * ELF64 files made by code, right or wrong: sections become segments by their flags, and a test may change any byte of
 * the result afterwards.
 */
#ifndef VPROF_TEST_SUPPORT_ELF_BUILDER_H
#define VPROF_TEST_SUPPORT_ELF_BUILDER_H

#include <elf.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct elf_section {
	const char *name;
	uint32_t type;  /* SHT_PROGBITS, ... */
	uint64_t flags; /* SHF_ALLOC (with type SHT_NOTE: PT_NOTE, else PT_LOAD), SHF_WRITE, SHF_EXECINSTR */
	uint64_t gva;
	uint64_t gpa;
	const void *data;
	size_t n;
	uint64_t memory_bytes; /* 0: n */
};

struct elf_builder {
	GArray *sections; /* of struct elf_section */
	GArray *symbols;  /* of Elf64_Sym */
	GString *names;   /* .strtab */
	uint16_t machine;
	uint64_t entry;
	bool without_sections; /* no section headers at all */
};

static inline void elf_builder_init(struct elf_builder *builder)
{
	*builder = (struct elf_builder){
		.machine = EM_X86_64,
		.sections = g_array_new(FALSE, TRUE, sizeof(struct elf_section)),
		.symbols = g_array_new(FALSE, TRUE, sizeof(Elf64_Sym)),
		.names = g_string_new_len("", 1),
	};
	g_array_set_size(builder->symbols, 1); /* the null symbol */
}

static inline void elf_builder_deinit(struct elf_builder *builder)
{
	g_array_unref(builder->sections);
	g_array_unref(builder->symbols);
	g_string_free(builder->names, TRUE);
}

/* Returns the section's index for symbols. `section` and what it names are borrowed up to elf_builder_finish. */
static inline uint16_t elf_builder_section(struct elf_builder *builder, struct elf_section section)
{
	g_array_append_val(builder->sections, section);
	return (uint16_t)builder->sections->len;
}

/* info: ELF64_ST_INFO(bind, type). */
static inline void elf_builder_symbol(struct elf_builder *builder, const char *name, uint64_t value, uint64_t size,
                                      uint8_t info, uint16_t section)
{
	Elf64_Sym symbol = {
		.st_name = (uint32_t)builder->names->len,
		.st_info = info,
		.st_shndx = section,
		.st_value = value,
		.st_size = size,
	};

	g_string_append_len(builder->names, name, (gssize)strlen(name) + 1);
	g_array_append_val(builder->symbols, symbol);
}

static inline uint64_t elf_builder_append(GByteArray *file, const void *data, size_t n)
{
	static const uint8_t zeros[16];
	uint64_t offset;

	g_byte_array_append(file, zeros, -file->len & 15);
	offset = file->len;
	if (n > 0)
		g_byte_array_append(file, data, (guint)n);
	return offset;
}

/* An ELF note with its padding. */
static inline void elf_builder_note(GByteArray *notes, const char *name, uint32_t type, const void *value, uint32_t n)
{
	static const uint8_t zeros[4];
	Elf64_Nhdr header = {(uint32_t)strlen(name) + 1, n, type};

	g_byte_array_append(notes, (const uint8_t *)&header, sizeof(header));
	g_byte_array_append(notes, (const uint8_t *)name, header.n_namesz);
	g_byte_array_append(notes, zeros, -notes->len & 3);
	g_byte_array_append(notes, value, n);
	g_byte_array_append(notes, zeros, -notes->len & 3);
}

/*
 * The file: ELF header, program headers in the order of the sections, contents, then .symtab and .strtab if there are
 * symbols, .shstrtab, section headers last.
 */
static inline GByteArray *elf_builder_finish(const struct elf_builder *builder)
{
	GByteArray *file = g_byte_array_new();
	unsigned n = builder->sections->len;
	unsigned n_programs = 0;
	g_autofree Elf64_Phdr *programs = g_new0(Elf64_Phdr, n + 1);
	g_autofree Elf64_Shdr *headers = g_new0(Elf64_Shdr, n + 4);
	g_autoptr(GString) names = g_string_new_len("", 1);
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = builder->machine,
		.e_version = EV_CURRENT,
		.e_entry = builder->entry,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	unsigned at = n + 1; /* of the next section header */

	g_byte_array_set_size(file, (guint)(sizeof(header) + n * sizeof(Elf64_Phdr)));
	memset(file->data, 0, file->len);
	for (unsigned i = 0; i < n; i++) {
		const struct elf_section *section = &g_array_index(builder->sections, struct elf_section, i);
		size_t in_file = section->type == SHT_NOBITS ? 0 : section->n;
		uint64_t offset = elf_builder_append(file, section->data, in_file);

		headers[i + 1] = (Elf64_Shdr){
			.sh_name = (uint32_t)names->len,
			.sh_type = section->type,
			.sh_flags = section->flags,
			.sh_addr = section->gva,
			.sh_offset = offset,
			.sh_size = MAX(section->n, section->memory_bytes),
			.sh_addralign = 1,
		};
		g_string_append_len(names, section->name, (gssize)strlen(section->name) + 1);
		if (section->type != SHT_NOBITS)
			headers[i + 1].sh_size = section->n;
		if (section->flags & SHF_ALLOC)
			programs[n_programs++] = (Elf64_Phdr){
				.p_type = section->type == SHT_NOTE ? PT_NOTE : PT_LOAD,
				.p_flags = PF_R | (section->flags & SHF_WRITE ? PF_W : 0) |
			                   (section->flags & SHF_EXECINSTR ? PF_X : 0),
				.p_offset = offset,
				.p_vaddr = section->gva,
				.p_paddr = section->gpa,
				.p_filesz = in_file,
				.p_memsz = MAX(section->n, section->memory_bytes),
				.p_align = 4,
			};
	}
	if (builder->symbols->len > 1) {
		size_t bytes = builder->symbols->len * sizeof(Elf64_Sym);

		headers[at] = (Elf64_Shdr){.sh_name = (uint32_t)names->len,
		                           .sh_type = SHT_SYMTAB,
		                           .sh_offset = elf_builder_append(file, builder->symbols->data, bytes),
		                           .sh_size = bytes,
		                           .sh_link = at + 1,
		                           .sh_entsize = sizeof(Elf64_Sym)};
		g_string_append_len(names, ".symtab", 8);
		headers[at + 1] =
			(Elf64_Shdr){.sh_name = (uint32_t)names->len,
		                     .sh_type = SHT_STRTAB,
		                     .sh_offset = elf_builder_append(file, builder->names->str, builder->names->len),
		                     .sh_size = builder->names->len};
		g_string_append_len(names, ".strtab", 8);
		at += 2;
	}
	headers[at].sh_name = (uint32_t)names->len;
	g_string_append_len(names, ".shstrtab", 10);
	headers[at].sh_type = SHT_STRTAB;
	headers[at].sh_offset = elf_builder_append(file, names->str, names->len);
	headers[at].sh_size = names->len;

	header.e_phnum = (uint16_t)n_programs;
	if (!builder->without_sections) {
		header.e_shstrndx = (uint16_t)at;
		header.e_shnum = (uint16_t)(at + 1);
		header.e_shoff = elf_builder_append(file, headers, (at + 1) * sizeof(Elf64_Shdr));
	}
	memcpy(file->data, &header, sizeof(header));
	memcpy(file->data + sizeof(header), programs, n_programs * sizeof(Elf64_Phdr));
	return file;
}

/* For tests that change a finished file. */
static inline Elf64_Ehdr *elf_header(GByteArray *file)
{
	return (Elf64_Ehdr *)(void *)file->data;
}

static inline Elf64_Phdr *elf_program(GByteArray *file, unsigned index)
{
	return (Elf64_Phdr *)(void *)(file->data + sizeof(Elf64_Ehdr)) + index;
}

static inline Elf64_Shdr *elf_section_header(GByteArray *file, unsigned index)
{
	return (Elf64_Shdr *)(void *)(file->data + elf_header(file)->e_shoff) + index;
}

#endif
