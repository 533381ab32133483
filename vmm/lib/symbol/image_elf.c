// SPDX-License-Identifier: BSD-2-Clause
/*
 * ELF64 of either architecture: System V ABI, "ELF Header", "Program Header", "Section Header"; notes of Xen
 * (xen/include/public/elfnote.h) and GNU (build-id).
 */
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/symbol/image_priv.h"

/* A kernel has about five; the System V ABI's limit would let a file make us walk its notes 65,535 times. */
#define PROGRAM_HEADERS_MAX 256u
/* A kernel's notes have some hundred bytes. What lies beyond is not looked at. */
#define NOTES_BYTES_MAX (UINT64_C(1) << 20)

#define XEN_ELFNOTE_PHYS32_ENTRY 18u

#define GIVE_KNOWN "give one for x86-64 or arm64"
#define GET_WHOLE_FILE "copy or build it again"

static bool check_header(const struct image *image, Elf64_Ehdr *header, GError **error)
{
	struct span bytes = image->bytes;
	uint8_t ident[EI_NIDENT] = {0};

	memcpy(ident, bytes.data ? bytes.data : ident, MIN(bytes.n, sizeof(ident)));
	if (bytes.n < SELFMAG || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return image_fail(
			image, error, IMAGE_ERROR_FORMAT,
			"%s is neither an ELF file nor a bzImage (%zu bytes, starting with %02x %02x %02x %02x); give a vmlinux, a bzImage (vmlinuz) or another ELF64 kernel",
			image->compression ? "its payload" : "it", bytes.n, ident[0], ident[1], ident[2], ident[3]);
	if (bytes.n > EI_DATA && ident[EI_CLASS] != ELFCLASS64)
		return image_fail(image, error, IMAGE_ERROR_CLASS, "it is a %s ELF file; " GIVE_KNOWN,
		                  ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "malformed");
	if (!span_read(bytes, 0, header, sizeof(*header)))
		return image_fail(image, error, IMAGE_ERROR_TRUNCATED,
		                  "its ELF header has %zu bytes and the file %zu; " GET_WHOLE_FILE, sizeof(*header),
		                  bytes.n);
	if (ident[EI_DATA] != ELFDATA2LSB || arch_of_elf(header->e_machine) == ARCH_UNKNOWN)
		return image_fail(image, error, IMAGE_ERROR_CLASS, "it is for ELF machine %u (%s-endian); " GIVE_KNOWN,
		                  header->e_machine, ident[EI_DATA] == ELFDATA2LSB ? "little" : "big");
	if (image->kind == IMAGE_MODULE && header->e_type != ET_REL)
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "it is an ELF file of type %u; a loadable module has %u", header->e_type, ET_REL);
	if (image->kind != IMAGE_MODULE && header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "it is an ELF file of type %u, not an executable; give a linked kernel",
		                  header->e_type);
	return true;
}

static bool add_segment(struct image *image, unsigned index, const Elf64_Phdr *header, GError **error)
{
	uint64_t end, file_bytes = header->p_filesz;

	if (header->p_memsz == 0)
		return true;
	if (header->p_filesz > header->p_memsz || __builtin_add_overflow(header->p_paddr, header->p_memsz, &end) ||
	    __builtin_add_overflow(header->p_vaddr, header->p_memsz, &end))
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "program header %u has impossible sizes (0x%" PRIx64 " bytes in the file, 0x%" PRIx64
		                  " in memory at 0x%" PRIx64 "); build it again",
		                  index, header->p_filesz, header->p_memsz, header->p_paddr);
	bool in_file = span_holds(image->bytes, header->p_offset, file_bytes);

	if (!in_file && image->kind == IMAGE_PROGRAM)
		file_bytes = 0;
	else if (!in_file)
		return image_fail(image, error, IMAGE_ERROR_TRUNCATED,
		                  "program header %u names 0x%" PRIx64 " bytes at offset 0x%" PRIx64
		                  ", the file has 0x%zx; " GET_WHOLE_FILE,
		                  index, header->p_filesz, header->p_offset, image->bytes.n);
	if (image->n_segments == IMAGE_SEGMENTS_MAX)
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "it has more than %u segments to load; link it with fewer", IMAGE_SEGMENTS_MAX);
	image->segments[image->n_segments++] = (struct image_segment){
		.gpa = header->p_paddr,
		.gva = header->p_vaddr,
		.file_offset = header->p_offset,
		.file_bytes = file_bytes,
		.memory_bytes = header->p_memsz,
		.flags = header->p_flags,
	};
	return true;
}

static int compare_gpa(const void *a, const void *b)
{
	const struct image_segment *left = a, *right = b;

	return (left->gpa > right->gpa) - (left->gpa < right->gpa);
}

static bool order_segments(struct image *image, GError **error)
{
	if (image->n_segments == 0)
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "it has no segment to load; give a linked kernel");
	qsort(image->segments, image->n_segments, sizeof(image->segments[0]), compare_gpa);
	for (size_t i = 1; i < image->n_segments; i++) {
		const struct image_segment *low = &image->segments[i - 1], *high = &image->segments[i];

		if (high->gpa - low->gpa < low->memory_bytes)
			return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
			                  "its segments at 0x%" PRIx64 " (0x%" PRIx64 " bytes) and 0x%" PRIx64
			                  " (0x%" PRIx64 " bytes) overlap; build it again",
			                  low->gpa, low->memory_bytes, high->gpa, high->memory_bytes);
	}
	return true;
}

static void take_note(struct image *image, struct span name, uint32_t type, struct span value)
{
	bool xen = name.n == sizeof("Xen") && memcmp(name.data, "Xen", name.n) == 0;
	bool gnu = name.n == sizeof(ELF_NOTE_GNU) && memcmp(name.data, ELF_NOTE_GNU, name.n) == 0;

	if (xen && type == XEN_ELFNOTE_PHYS32_ENTRY && !image->has_pvh_entry) {
		/* Linux writes it with _ASM_PTR (8 bytes), others with 4. */
		uint64_t entry = 0;

		if ((value.n == 4 || value.n == 8) && span_read(value, 0, &entry, value.n) && entry <= UINT32_MAX) {
			image->pvh_entry = (uint32_t)entry;
			image->has_pvh_entry = true;
		}
	} else if (gnu && type == NT_GNU_BUILD_ID && image->build_id.n == 0 && value.n <= IMAGE_BUILD_ID_BYTES_MAX) {
		image->build_id = value;
	}
}

/* Notes are hints: a malformed one ends the walk and nothing else. */
void image_walk_notes(struct image *image, uint64_t from, uint64_t bytes, uint64_t alignment)
{
	uint64_t offset = 0;
	struct span notes;
	Elf64_Nhdr note;

	alignment = alignment == 8 ? 8 : 4;
	if (!span_slice(image->bytes, from, MIN(bytes, NOTES_BYTES_MAX), &notes))
		return;
	while (span_read(notes, offset, &note, sizeof(note))) {
		uint64_t name_at = offset + sizeof(note);
		uint64_t value_at = (name_at + note.n_namesz + alignment - 1) & ~(alignment - 1);
		struct span name, value;

		if (!span_slice(notes, name_at, note.n_namesz, &name) ||
		    !span_slice(notes, value_at, note.n_descsz, &value))
			return;
		take_note(image, name, note.n_type, value);
		offset = (value_at + note.n_descsz + alignment - 1) & ~(alignment - 1);
	}
}

static bool parse_program_headers(struct image *image, const Elf64_Ehdr *header, GError **error)
{
	if (header->e_phnum > PROGRAM_HEADERS_MAX || (header->e_phnum > 0 && header->e_phentsize != sizeof(Elf64_Phdr)))
		return image_fail(
			image, error, IMAGE_ERROR_SEGMENTS,
			"it has %u program headers of %u bytes, expected at most %u of %zu; give a linked kernel",
			header->e_phnum, header->e_phentsize, PROGRAM_HEADERS_MAX, sizeof(Elf64_Phdr));
	for (unsigned i = 0; i < header->e_phnum; i++) {
		uint64_t offset;
		Elf64_Phdr program;

		if (__builtin_add_overflow(header->e_phoff, i * sizeof(program), &offset) ||
		    !span_read(image->bytes, offset, &program, sizeof(program)))
			return image_fail(image, error, IMAGE_ERROR_TRUNCATED,
			                  "program header %u at offset 0x%" PRIx64
			                  " is outside the file (0x%zx bytes); " GET_WHOLE_FILE,
			                  i, offset, image->bytes.n);
		if (program.p_type == PT_LOAD && !add_segment(image, i, &program, error))
			return false;
		if (program.p_type == PT_GNU_EH_FRAME &&
		    span_slice(image->bytes, program.p_offset, program.p_filesz, &image->frame_header))
			image->frame_header_gva = program.p_vaddr;
		if (program.p_type == PT_NOTE)
			image_walk_notes(image, program.p_offset, program.p_filesz, program.p_align);
	}
	return order_segments(image, error);
}

static bool check_section(const struct image *image, size_t index, GError **error)
{
	const Elf64_Shdr *section = &image->sections[index];

	if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL ||
	    span_holds(image->bytes, section->sh_offset, section->sh_size))
		return true;
	return image_fail(image, error, IMAGE_ERROR_TRUNCATED,
	                  "section %zu names 0x%" PRIx64 " bytes at offset 0x%" PRIx64
	                  ", the file has 0x%zx; " GET_WHOLE_FILE,
	                  index, section->sh_size, section->sh_offset, image->bytes.n);
}

static bool parse_section_headers(struct image *image, const Elf64_Ehdr *header, GError **error)
{
	size_t bytes = header->e_shnum * sizeof(Elf64_Shdr);
	struct span table;

	if (header->e_shoff == 0 || header->e_shnum == 0)
		return true;
	if (header->e_shentsize != sizeof(Elf64_Shdr) || !span_slice(image->bytes, header->e_shoff, bytes, &table))
		return image_fail(image, error, IMAGE_ERROR_TRUNCATED,
		                  "%u section headers of %u bytes at offset 0x%" PRIx64
		                  " are outside the file (0x%zx bytes); " GET_WHOLE_FILE,
		                  header->e_shnum, header->e_shentsize, header->e_shoff, image->bytes.n);
	image->sections = g_memdup2(table.data, table.n);
	image->n_sections = header->e_shnum;
	for (size_t i = 0; i < image->n_sections; i++)
		if (!check_section(image, i, error))
			return false;
	if (header->e_shstrndx < image->n_sections)
		image->section_names = image_section_span(image, header->e_shstrndx);
	return true;
}

bool image_parse_elf(struct image *image, GError **error)
{
	Elf64_Ehdr header;

	if (!check_header(image, &header, error) ||
	    (image->kind != IMAGE_MODULE && !parse_program_headers(image, &header, error)) ||
	    !parse_section_headers(image, &header, error))
		return false;
	image->entry = header.e_entry;
	image->arch = arch_of_elf(header.e_machine);
	return true;
}
