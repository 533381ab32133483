// SPDX-License-Identifier: BSD-2-Clause
#include "attach/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

G_DEFINE_QUARK(vprof_core_file_error, core_file_error)

#define HEADERS_MAX 65536u /* with PN_XNUM, their number is in section header 0 */

bool core_file_fail(GError **error, const char *why)
{
	g_set_error_literal(error, CORE_FILE_ERROR, CORE_FILE_ERROR_FORMAT, why);
	return false;
}

/* ---- notes ---- */

/* Bytes that remain, for a note's parts, which are padded to 4. */
static bool part_take(const uint8_t **at, size_t *left, uint32_t bytes, const uint8_t **part)
{
	const size_t padded = ((size_t)bytes + 3) & ~(size_t)3;

	if (padded > *left)
		return false;
	*part = *at;
	*at += padded;
	*left -= padded;
	return true;
}

static void note_take(struct core_file *core, const uint8_t *name, uint32_t name_bytes, const uint8_t *body,
                      uint32_t body_bytes)
{
	if (name_bytes == sizeof("QEMU") && memcmp(name, "QEMU", sizeof("QEMU")) == 0 &&
	    core->n_vcpus < GUEST_VCPUS_MAX &&
	    core_state_read(body, body_bytes, core->n_vcpus, &core->registers[core->n_vcpus]))
		core->n_vcpus++;
}

/* Up to one that is cut off. */
static void notes_take(struct core_file *core, const uint8_t *at, size_t left)
{
	const uint8_t *name, *body;
	Elf64_Nhdr note;

	while (left >= sizeof(note)) {
		memcpy(&note, at, sizeof(note));
		at += sizeof(note);
		left -= sizeof(note);
		if (!part_take(&at, &left, note.n_namesz, &name) || !part_take(&at, &left, note.n_descsz, &body))
			return;
		note_take(core, name, note.n_namesz, body, note.n_descsz);
	}
}

/* ---- an ELF file ---- */

static bool notes_read(struct core_file *core, uint64_t at, uint64_t bytes, GError **error)
{
	if (bytes > CORE_FILE_NOTES_BYTES_MAX)
		return core_file_fail(error, "its notes are larger than any of QEMU");
	g_autofree uint8_t *notes = g_malloc(bytes + 1);

	if (!dump_bytes_read(&core->bytes, at, notes, bytes))
		return core_file_fail(error, "it is cut off in its notes");
	notes_take(core, notes, bytes);
	return true;
}

static bool range_add(struct core_file *core, const Elf64_Phdr *segment, GError **error)
{
	uint64_t end;

	if (segment->p_filesz == 0)
		return true;
	if (core->n_ranges == CORE_FILE_RANGES_MAX)
		return core_file_fail(error, "it has more pieces of memory than any guest");
	if (__builtin_add_overflow(segment->p_paddr, segment->p_filesz, &end) ||
	    __builtin_add_overflow(segment->p_offset, segment->p_filesz, &end))
		return core_file_fail(error, "its pieces of memory are beyond all addresses");
	core->ranges[core->n_ranges++] = (struct core_range){segment->p_paddr, segment->p_filesz, segment->p_offset};
	return true;
}

/* How many program headers there are. */
static bool headers_count(const struct core_file *core, const Elf64_Ehdr *header, uint32_t *n, GError **error)
{
	Elf64_Shdr first;

	*n = header->e_phnum;
	if (header->e_phnum != PN_XNUM)
		return true;
	if (header->e_shentsize != sizeof(first) ||
	    !dump_bytes_read(&core->bytes, header->e_shoff, &first, sizeof(first)))
		return core_file_fail(error, "the number of its pieces is missing");
	*n = first.sh_info;
	return true;
}

static bool segments_read(struct core_file *core, const Elf64_Ehdr *header, GError **error)
{
	uint32_t n;

	if (!headers_count(core, header, &n, error))
		return false;
	if (n > HEADERS_MAX || header->e_phoff > INT64_MAX / 2)
		return core_file_fail(error, "it has more pieces than any core of QEMU");
	core->ranges = g_new(struct core_range, CORE_FILE_RANGES_MAX);
	for (uint32_t i = 0; i < n; i++) {
		Elf64_Phdr segment;

		if (!dump_bytes_read(&core->bytes, header->e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
			return core_file_fail(error, "it is cut off in its headers");
		if (segment.p_type == PT_NOTE && !notes_read(core, segment.p_offset, segment.p_filesz, error))
			return false;
		if (segment.p_type == PT_LOAD && !range_add(core, &segment, error))
			return false;
	}
	return true;
}

static int ranges_compare(const void *a, const void *b)
{
	const struct core_range *one = a, *other = b;

	return (one->gpa > other->gpa) - (one->gpa < other->gpa);
}

static bool ranges_order(struct core_file *core, GError **error)
{
	if (core->n_ranges == 0)
		return core_file_fail(error, "it has no memory");
	qsort(core->ranges, core->n_ranges, sizeof(*core->ranges), ranges_compare);
	for (size_t i = 1; i < core->n_ranges; i++)
		if (core->ranges[i].gpa - core->ranges[i - 1].gpa < core->ranges[i - 1].bytes)
			return core_file_fail(
				error, "it has the same memory twice: by virtual addresses; dump it without paging");
	return true;
}

static bool elf_read(struct core_file *core, GError **error)
{
	Elf64_Ehdr header = {0};

	if (!dump_bytes_read(&core->bytes, 0, &header, sizeof(header)))
		return core_file_fail(error, "it is shorter than the header of an ELF file");
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_CORE ||
	    header.e_phentsize != sizeof(Elf64_Phdr))
		return core_file_fail(error, "it is no ELF core of a guest, as `virsh dump --memory-only` writes it");
	if (header.e_machine != EM_X86_64)
		return core_file_fail(error, "it is not of an x86-64 guest");
	return segments_read(core, &header, error) && ranges_order(core, error);
}

static bool kdump_read(struct core_file *core, GError **error)
{
	core->kdump = kdump_file_open(&core->bytes, error);
	return core->kdump && notes_read(core, core->kdump->notes, core->kdump->notes_bytes, error);
}

static bool core_read(struct core_file *core, GError **error)
{
	uint8_t head[16] = {0};

	if (!dump_bytes_open(&core->bytes, core->fd, error))
		return false;
	/* What is shorter is no ELF file either. */
	(void)dump_bytes_read(&core->bytes, 0, head, sizeof(head));
	if (!(kdump_file_is(head, sizeof(head)) ? kdump_read : elf_read)(core, error))
		return false;
	return core->n_vcpus > 0 ||
	       core_file_fail(error, "it has no registers of a vCPU, as QEMU's dumps have them (notes QEMU)");
}

struct core_file *core_file_open_fd(int fd, const char *path, GError **error)
{
	struct core_file *core = g_new0(struct core_file, 1);

	core->fd = fd;
	if (core_read(core, error))
		return core;
	g_prefix_error(error, "cannot read the dump %s: ", path);
	core_file_free(core);
	return NULL;
}

struct core_file *core_file_open(const char *path, GError **error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd >= 0)
		return core_file_open_fd(fd, path, error);
	g_set_error(error, CORE_FILE_ERROR, CORE_FILE_ERROR_READ, "cannot open the dump %s: %s", path,
	            g_strerror(errno));
	return NULL;
}

void core_file_free(struct core_file *core)
{
	if (!core)
		return;
	close(core->fd);
	kdump_file_free(core->kdump);
	dump_bytes_close(&core->bytes);
	g_free(core->ranges);
	g_free(core);
}

/* The last range that begins at or before `gpa`, if it has it. */
static const struct core_range *range_at(const struct core_file *core, uint64_t gpa)
{
	size_t low = 0, high = core->n_ranges;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (core->ranges[middle].gpa <= gpa)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && gpa - core->ranges[low - 1].gpa < core->ranges[low - 1].bytes ? &core->ranges[low - 1] : NULL;
}

uint64_t core_file_memory_bytes(const struct core_file *core)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < core->n_ranges; i++)
		bytes += core->ranges[i].bytes;
	return core->kdump ? kdump_file_memory_bytes(core->kdump) : bytes;
}

bool core_file_read(const struct core_file *core, gpa_t from, void *to, size_t bytes)
{
	uint8_t *out = to;

	if (core->kdump)
		return kdump_file_read(core->kdump, from, to, bytes);
	while (bytes > 0) {
		const struct core_range *range = range_at(core, from.value);

		if (!range)
			return false;
		const uint64_t offset = from.value - range->gpa;
		const size_t n = MIN(bytes, range->bytes - offset);

		if (!dump_bytes_read(&core->bytes, range->offset + offset, out, n))
			return false;
		out += n;
		from.value += n;
		bytes -= n;
	}
	return true;
}
