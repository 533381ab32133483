// SPDX-License-Identifier: BSD-2-Clause
#include "guest/elf_note.h"

#include <elf.h>
#include <string.h>

#define SEGMENTS_MAX 32u
#define NOTES_MAX 16u

static uint64_t padded(uint32_t bytes)
{
	return ((uint64_t)bytes + 3) & ~UINT64_C(3);
}

static bool is_build_id(struct page_walk *walk, gva_t name, const Elf64_Nhdr *note)
{
	char text[sizeof(ELF_NOTE_GNU)];

	return note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(text) && note->n_descsz != 0 &&
	       page_walk_read(walk, name, text, sizeof(text)) && memcmp(text, ELF_NOTE_GNU, sizeof(text)) == 0;
}

size_t elf_notes_build_id(struct page_walk *walk, gva_t start, uint64_t bytes,
                          uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX])
{
	uint64_t at = 0;
	Elf64_Nhdr note;

	for (unsigned i = 0; i < NOTES_MAX && at <= bytes && bytes - at >= sizeof(note); i++) {
		if (!page_walk_read(walk, (gva_t){start.value + at}, &note, sizeof(note)))
			return 0;
		uint64_t name = at + sizeof(note), description = name + padded(note.n_namesz);

		at = description + padded(note.n_descsz);
		if (at > bytes)
			return 0;
		size_t n = note.n_descsz < ELF_NOTE_BUILD_ID_BYTES_MAX ? note.n_descsz : ELF_NOTE_BUILD_ID_BYTES_MAX;

		if (is_build_id(walk, (gva_t){start.value + name}, &note))
			return page_walk_read(walk, (gva_t){start.value + description}, build_id, n) ? n : 0;
	}
	return 0;
}

/* Notes are found by where they are in the file: addresses may have been moved. */
size_t elf_build_id_read(struct page_walk *walk, gva_t start, uint64_t bytes,
                         uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX])
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	size_t n = 0;

	if (bytes < sizeof(header) || !page_walk_read(walk, start, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(segment))
		return 0;
	for (unsigned i = 0; i < header.e_phnum && i < SEGMENTS_MAX && n == 0; i++) {
		uint64_t at = header.e_phoff + i * sizeof(segment);

		if (at > bytes || bytes - at < sizeof(segment) ||
		    !page_walk_read(walk, (gva_t){start.value + at}, &segment, sizeof(segment)))
			return 0;
		if (segment.p_type == PT_NOTE && segment.p_offset <= bytes &&
		    segment.p_filesz <= bytes - segment.p_offset)
			n = elf_notes_build_id(walk, (gva_t){start.value + segment.p_offset}, segment.p_filesz,
			                       build_id);
	}
	return n;
}
