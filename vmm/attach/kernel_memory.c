// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kernel_memory.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest/processor.h"
#include "lib/parser/parser.h"
#include "lib/record/arch.h"
#include "lib/symbol/kallsyms.h"

G_DEFINE_QUARK(vprof_kernel_memory_error, kernel_memory_error)

#define PAGE_BYTES UINT64_C(4096)
#define PIECE_BYTES (UINT64_C(64) << 10) /* read at once */
#define RUNS_MAX (IMAGE_SEGMENTS_MAX - 1)
#define HEADER_BYTES 8192u /* ELF header and program headers, in front of the kernel's bytes */

_Static_assert(sizeof(Elf64_Ehdr) + (RUNS_MAX + 1) * sizeof(Elf64_Phdr) <= HEADER_BYTES, "they fit");

/* Pages in a row that may all be executed, or none of them. */
struct run {
	uint64_t start, end;
	bool executable;
};

/* What the sections of a vmlinux are in kallsyms (include/asm-generic/vmlinux.lds.h; CONFIG_KALLSYMS_ALL). */
static const struct bounds {
	const char *section, *start, *stop;
} bounds[] = {
	{".notes", "__start_notes", "__stop_notes"},
	{".BTF", "__start_BTF", "__stop_BTF"},
	{".orc_header", "__start_orc_header", "__stop_orc_header"},
	{".orc_unwind_ip", "__start_orc_unwind_ip", "__stop_orc_unwind_ip"},
	{".orc_unwind", "__start_orc_unwind", "__stop_orc_unwind"},
};
#define BOUNDS G_N_ELEMENTS(bounds)
#define NAMES_BYTES 256u

struct copy {
	const struct page_walk *walk;
	uint64_t start, end; /* of the mapping */
	struct run runs[RUNS_MAX];
	size_t n_runs;
	struct {
		uint64_t start, stop;
	} found[BOUNDS];
	int fd;
	uint8_t *file; /* the ELF: header, then the memory from `start` on, then sections */
	size_t file_bytes;
	bool lost;      /* there was no room for a page */
	uint8_t *piece; /* [PIECE_BYTES] what is read */
};

static bool fail(GError **error, enum kernel_memory_error code, const char *what)
{
	g_set_error(error, KERNEL_MEMORY_ERROR, (int)code, "no kernel image in the guest's memory: %s", what);
	return false;
}

/* ---- the bytes ---- */

static uint64_t offset_of(const struct copy *copy, uint64_t gva)
{
	return HEADER_BYTES + (gva - copy->start);
}

static bool runs_add(struct copy *copy, uint64_t start, uint64_t end, bool executable)
{
	struct run *last = copy->n_runs > 0 ? &copy->runs[copy->n_runs - 1] : NULL;

	if (last && last->end == start && last->executable == executable) {
		last->end = end;
		return true;
	}
	if (copy->n_runs == RUNS_MAX)
		return false;
	copy->runs[copy->n_runs++] = (struct run){start, end, executable};
	return true;
}

static bool page_is_zero(const uint8_t *page)
{
	static const uint8_t zeros[PAGE_BYTES];

	return memcmp(page, zeros, PAGE_BYTES) == 0;
}

/*
 * Pages of zeros are left out: the file, which lives as long as the engine does, has holes for them. Written, because
 * each page that is filled in a mapping is a fault of its own.
 */
static void pages_put(struct copy *copy, uint64_t gva, size_t bytes)
{
	for (size_t at = 0, end; at < bytes; at = end + PAGE_BYTES) {
		for (end = at; end < bytes && !page_is_zero(copy->piece + end);)
			end += PAGE_BYTES;
		if (end > at && pwrite(copy->fd, copy->piece + at, end - at, (off_t)offset_of(copy, gva + at)) !=
		                        (ssize_t)(end - at))
			copy->lost = true;
	}
}

/* In large pieces: each read is a system call, and a kernel has thousands of pages. */
static bool copy_leaf(struct copy *copy, uint64_t gva, uint64_t end, uint64_t gpa)
{
	struct guest *guest = copy->walk->guest;

	while (gva < end) {
		size_t bytes = MIN(end - gva, PIECE_BYTES);

		if (!guest->ops->memory_read(guest, (gpa_t){gpa}, copy->piece, bytes))
			return false;
		pages_put(copy, gva, bytes);
		gva += bytes;
		gpa += bytes;
	}
	return true;
}

/* What is not mapped, or not RAM, stays zero: holes are normal, freed parts are unmapped. */
static bool copy_pages(struct copy *copy, GError **error)
{
	struct page_leaf leaf;

	for (uint64_t gva = copy->start; gva < copy->end;) {
		if (!page_walk_leaf(copy->walk, (gva_t){gva}, &leaf)) {
			gva += PAGE_BYTES;
			continue;
		}
		uint64_t next = MIN(leaf.gva + leaf.bytes, copy->end);

		if (copy_leaf(copy, gva, next, leaf.gpa + (gva - leaf.gva)) &&
		    !runs_add(copy, gva, next, leaf.executable))
			return fail(error, KERNEL_MEMORY_ERROR_NONE, "its mapping is in too many pieces");
		gva = next;
	}
	if (copy->lost)
		return fail(error, KERNEL_MEMORY_ERROR_MEMORY, "this host has no memory for a copy");
	return copy->n_runs > 0 || fail(error, KERNEL_MEMORY_ERROR_MEMORY, "its pages are not in RAM");
}

/* ---- the sections ---- */

static void note_symbol(uint64_t address, char type G_GNUC_UNUSED, const char *name, void *data)
{
	struct copy *copy = data;

	if (name[0] != '_' || name[1] != '_' || name[2] != 's')
		return;
	for (size_t i = 0; i < BOUNDS; i++) {
		if (strcmp(name, bounds[i].start) == 0)
			copy->found[i].start = address;
		else if (strcmp(name, bounds[i].stop) == 0)
			copy->found[i].stop = address;
	}
}

static bool find_sections(struct copy *copy, GError **error)
{
	g_autoptr(GError) why = NULL;

	for (size_t i = 0; i < copy->n_runs; i++) {
		const struct run *run = &copy->runs[i];

		g_clear_error(&why);
		if (kallsyms_decode(copy->file + offset_of(copy, run->start), run->end - run->start, run->start,
		                    note_symbol, copy, &why))
			return true;
	}
	return fail(error, KERNEL_MEMORY_ERROR_NONE, why ? why->message : "nothing is mapped");
}

/* Whether section i was found and lies in the copy. */
static bool has_section(const struct copy *copy, size_t i)
{
	return copy->found[i].start >= copy->start && copy->found[i].stop > copy->found[i].start &&
	       copy->found[i].stop <= copy->end;
}

/* Names and headers behind the bytes; NULL: of `n` entries, how many there are. */
static void write_sections(struct copy *copy, Elf64_Ehdr *header)
{
	uint64_t at = HEADER_BYTES + (copy->end - copy->start);
	char *names = (char *)copy->file + at;
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(names + NAMES_BYTES);
	uint32_t used = 1;
	uint16_t n = 1;

	for (size_t i = 0; i < BOUNDS; i++) {
		if (!has_section(copy, i))
			continue;
		sections[n++] = (Elf64_Shdr){.sh_name = used,
		                             .sh_type = SHT_PROGBITS,
		                             .sh_addr = copy->found[i].start,
		                             .sh_offset = offset_of(copy, copy->found[i].start),
		                             .sh_size = copy->found[i].stop - copy->found[i].start};
		used += (uint32_t)g_strlcpy(names + used, bounds[i].section, NAMES_BYTES - used) + 1;
	}
	sections[n] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = NAMES_BYTES};
	header->e_shstrndx = n;
	header->e_shnum = (uint16_t)(n + 1);
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shoff = at + NAMES_BYTES;
}

/* Physical addresses do not matter here, but must not overlap: they count from 0. */
static Elf64_Phdr run_header(const struct copy *copy, const struct run *run)
{
	uint64_t bytes = run->end - run->start;

	return (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = run->executable ? PF_R | PF_X : PF_R | PF_W,
		.p_offset = offset_of(copy, run->start),
		.p_vaddr = run->start,
		.p_paddr = run->start - copy->start,
		.p_filesz = bytes,
		.p_memsz = bytes,
	};
}

static void write_headers(struct copy *copy)
{
	Elf64_Phdr *segments = (Elf64_Phdr *)(void *)(copy->file + sizeof(Elf64_Ehdr));
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = arch_elf(processor_of(copy->walk->tables.processor)->arch),
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
	};

	while (header.e_phnum < copy->n_runs) {
		segments[header.e_phnum] = run_header(copy, &copy->runs[header.e_phnum]);
		header.e_phnum++;
	}
	if (has_section(copy, 0)) /* .notes */
		segments[header.e_phnum++] = (Elf64_Phdr){.p_type = PT_NOTE,
		                                          .p_offset = offset_of(copy, copy->found[0].start),
		                                          .p_vaddr = copy->found[0].start,
		                                          .p_filesz = copy->found[0].stop - copy->found[0].start,
		                                          .p_align = 4};
	write_sections(copy, &header);
	memcpy(copy->file, &header, sizeof(header));
}

/* ---- the file ---- */

static bool file_map(struct copy *copy, GError **error)
{
	copy->file_bytes = HEADER_BYTES + (copy->end - copy->start) + NAMES_BYTES + (BOUNDS + 2) * sizeof(Elf64_Shdr);
	if (copy->fd >= 0 && ftruncate(copy->fd, (off_t)copy->file_bytes) == 0) {
		copy->file = mmap(NULL, copy->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, copy->fd, 0);
		if (copy->file != MAP_FAILED)
			return true;
	}
	g_set_error(error, KERNEL_MEMORY_ERROR, KERNEL_MEMORY_ERROR_MEMORY,
	            "cannot make a file of %zu bytes for the guest's kernel: %s", copy->file_bytes, g_strerror(errno));
	return false;
}

static bool file_fill(struct copy *copy, GError **error)
{
	if (!file_map(copy, error))
		return false;
	copy->piece = g_malloc(PIECE_BYTES);
	bool done = copy_pages(copy, error) && find_sections(copy, error);

	g_free(copy->piece);
	if (done)
		write_headers(copy);
	munmap(copy->file, copy->file_bytes);
	if (done && !sealed_finish(copy->fd)) {
		g_set_error(error, KERNEL_MEMORY_ERROR, KERNEL_MEMORY_ERROR_MEMORY,
		            "cannot seal the file of the guest's kernel: %s", g_strerror(errno));
		return false;
	}
	return done;
}

struct image *kernel_memory_image(const struct page_walk *walk, uint64_t code, const char *path, int *fd,
                                  GError **error)
{
	struct copy copy = {.walk = walk};
	struct image *image = NULL;

	kernel_memory_extent(walk, code, &copy.start, &copy.end);
	if (copy.end == copy.start) {
		fail(error, KERNEL_MEMORY_ERROR_NONE, "its code is not mapped");
		return NULL;
	}
	copy.fd = sealed_new("vprof-kernel");
	if (file_fill(&copy, error))
		image = image_open_fd(path, IMAGE_KERNEL, copy.fd, error);
	if (image)
		*fd = copy.fd;
	else if (copy.fd >= 0)
		close(copy.fd);
	return image;
}
