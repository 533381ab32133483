// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file may be changed or cut off while it is read; what is parsed is a sealed copy. Of an ELF file, that has what is
 * loaded, the symbols and the notes, or the debug information, and zeros elsewhere: a vmlinux with debug information
 * has a gigabyte, of which a kernel is a twentieth.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

#define PIECE_BYTES (128u << 10)
#define PROGRAM_HEADERS_MAX 256u
#define SECTION_NAMES_BYTES_MAX (1u << 20)

struct file_copy {
	enum image_copy_part part;
	int from, to;
	uint64_t file_bytes;
	uint64_t copied;
	uint8_t *piece;
	Elf64_Ehdr header;
	Elf64_Phdr programs[PROGRAM_HEADERS_MAX];
	size_t n_programs;
	GError **error;
};

G_GNUC_PRINTF(2, 3)
static bool fail(const struct file_copy *copy, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *what = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_set_error_literal(copy->error, IMAGE_ERROR, IMAGE_ERROR_IO, what);
	return false;
}

static bool read_at(const struct file_copy *copy, uint64_t at, void *to, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(copy->from, (char *)to + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return fail(copy, "%s",
			            got < 0 ? g_strerror(errno) : "it became shorter while it was read; try again");
		done += (size_t)got;
	}
	return true;
}

/* What of a range is beyond the end of the file is left out: the parser says what that means. */
static bool range_copy(struct file_copy *copy, uint64_t at, uint64_t bytes)
{
	uint64_t end;

	if (at >= copy->file_bytes)
		return true;
	end = at + MIN(bytes, copy->file_bytes - at);
	copy->copied += end - at;
	if (copy->copied > IMAGE_BYTES_MAX)
		return fail(copy, "it has more than %" PRIu64 " bytes to read; strip its debug information",
		            IMAGE_BYTES_MAX);
	while (at < end) {
		size_t n = (size_t)MIN(end - at, PIECE_BYTES);

		if (!read_at(copy, at, copy->piece, n))
			return false;
		if (pwrite(copy->to, copy->piece, n, (off_t)at) != (ssize_t)n)
			return fail(copy, "cannot copy it: %s", g_strerror(errno));
		at += n;
	}
	return true;
}

/* Whether the file says where its parts are. */
static bool has_sections(const struct file_copy *copy)
{
	const Elf64_Ehdr *header = &copy->header;

	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_shnum > 0 && header->e_shoff > 0 &&
	       header->e_shentsize == sizeof(Elf64_Shdr) && header->e_phnum <= PROGRAM_HEADERS_MAX &&
	       (header->e_phnum == 0 || header->e_phentsize == sizeof(Elf64_Phdr)) &&
	       header->e_shoff <= copy->file_bytes &&
	       header->e_shnum * sizeof(Elf64_Shdr) <= copy->file_bytes - header->e_shoff &&
	       header->e_phoff <= copy->file_bytes &&
	       header->e_phnum * sizeof(Elf64_Phdr) <= copy->file_bytes - header->e_phoff;
}

static bool programs_copy(struct file_copy *copy)
{
	copy->n_programs = copy->header.e_phnum;
	if (!read_at(copy, copy->header.e_phoff, copy->programs, copy->n_programs * sizeof(Elf64_Phdr)) ||
	    !range_copy(copy, copy->header.e_phoff, copy->n_programs * sizeof(Elf64_Phdr)))
		return false;
	for (size_t i = 0; copy->part == IMAGE_COPY_LOADED && i < copy->n_programs; i++)
		if ((copy->programs[i].p_type == PT_LOAD || copy->programs[i].p_type == PT_NOTE) &&
		    !range_copy(copy, copy->programs[i].p_offset, copy->programs[i].p_filesz))
			return false;
	return true;
}

static bool is_in_program(const struct file_copy *copy, const Elf64_Shdr *section)
{
	for (size_t i = 0; i < copy->n_programs; i++) {
		const Elf64_Phdr *program = &copy->programs[i];

		if (program->p_type == PT_LOAD && section->sh_offset >= program->p_offset &&
		    section->sh_offset - program->p_offset <= program->p_filesz &&
		    section->sh_size <= program->p_filesz - (section->sh_offset - program->p_offset))
			return true;
	}
	return false;
}

/* Lists of locations and macros are most of it, and not looked at. */
static bool is_debug(const char *name, bool all)
{
	static const char *const unused[] = {"_loc", "_macro", "_frame", "_pub", "_gnu_pub"};
	const char *kind = g_str_has_prefix(name, ".debug")    ? name + strlen(".debug")
	                   : g_str_has_prefix(name, ".zdebug") ? name + strlen(".zdebug")
	                                                       : NULL;

	for (size_t i = 0; kind && !all && i < G_N_ELEMENTS(unused); i++)
		if (g_str_has_prefix(kind, unused[i]))
			return false;
	return kind != NULL;
}

static bool is_wanted(const struct file_copy *copy, const Elf64_Shdr *section, const char *name)
{
	if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL)
		return false;
	if (copy->part == IMAGE_COPY_DEBUG)
		return is_debug(name, false);
	/* Of the debug information, the unwind tables of code without .eh_frame (cfi.h). */
	return section->sh_type != SHT_REL && section->sh_type != SHT_RELA &&
	       (!is_debug(name, true) || strcmp(name, ".debug_frame") == 0) && !is_in_program(copy, section);
}

static bool sections_copy(struct file_copy *copy)
{
	const size_t n = copy->header.e_shnum;
	g_autofree Elf64_Shdr *sections = g_new(Elf64_Shdr, n);
	g_autofree char *names = NULL;
	size_t names_bytes = 0;

	if (!read_at(copy, copy->header.e_shoff, sections, n * sizeof(*sections)) ||
	    !range_copy(copy, copy->header.e_shoff, n * sizeof(*sections)))
		return false;
	if (copy->header.e_shstrndx < n) {
		const Elf64_Shdr *section = &sections[copy->header.e_shstrndx];

		if (section->sh_offset <= copy->file_bytes && section->sh_type != SHT_NOBITS)
			names_bytes = (size_t)MIN(MIN(section->sh_size, copy->file_bytes - section->sh_offset),
			                          SECTION_NAMES_BYTES_MAX);
		names = g_malloc0(names_bytes + 1);
		if (!read_at(copy, section->sh_offset, names, names_bytes) ||
		    !range_copy(copy, section->sh_offset, names_bytes))
			return false;
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = sections[i].sh_name < names_bytes ? names + sections[i].sh_name : "";

		if (is_wanted(copy, &sections[i], name) &&
		    !range_copy(copy, sections[i].sh_offset, sections[i].sh_size))
			return false;
	}
	return true;
}

static bool fill(struct file_copy *copy)
{
	if (ftruncate(copy->to, (off_t)copy->file_bytes) != 0)
		return fail(copy, "cannot copy it: %s", g_strerror(errno));
	if (copy->file_bytes >= sizeof(copy->header) && !read_at(copy, 0, &copy->header, sizeof(copy->header)))
		return false;
	if (copy->part == IMAGE_COPY_ALL || !has_sections(copy))
		return range_copy(copy, 0, copy->file_bytes);
	return range_copy(copy, 0, sizeof(copy->header)) && programs_copy(copy) && sections_copy(copy);
}

static bool check(struct file_copy *copy)
{
	struct stat status;

	if (fstat(copy->from, &status) != 0)
		return fail(copy, "%s", g_strerror(errno));
	if (!S_ISREG(status.st_mode))
		return fail(copy, "%s; give the path of a file",
		            S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file");
	copy->file_bytes = (uint64_t)status.st_size;
	if (copy->file_bytes > IMAGE_FILE_BYTES_MAX)
		return fail(copy, "it has %" PRIu64 " bytes, and a kernel or program has at most %" PRIu64,
		            copy->file_bytes, IMAGE_FILE_BYTES_MAX);
	return true;
}

int image_copy(int fd, enum image_copy_part part, GError **error)
{
	struct file_copy copy = {.part = part, .from = fd, .to = -1, .error = error};
	bool done;

	if (sealed_is(fd))
		return fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!check(&copy))
		return -1;
	copy.to = sealed_new("vprof-file");
	if (copy.to < 0) {
		fail(&copy, "cannot make memory for it: %s", g_strerror(errno));
		return -1;
	}
	copy.piece = g_malloc(PIECE_BYTES);
	done = fill(&copy) && (sealed_finish(copy.to) || fail(&copy, "cannot seal its copy: %s", g_strerror(errno)));
	g_free(copy.piece);
	if (done)
		return copy.to;
	close(copy.to);
	return -1;
}
