// SPDX-License-Identifier: BSD-2-Clause
#include "linux/kernel_memory.h"

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
#include "linux/search_linux_priv.h"

G_DEFINE_QUARK(vprof_kernel_memory_error, kernel_memory_error)

#define PAGE_BYTES UINT64_C(4096)
#define PIECE_BYTES (UINT64_C(64) << 10) /* read at once */
#define RUNS_MAX (IMAGE_SEGMENTS_MAX - 1)
#define HEADER_BYTES 8192u /* ELF header and program headers, in front of the kernel's bytes */

_Static_assert(sizeof(Elf64_Ehdr) + (RUNS_MAX + 1) * sizeof(Elf64_Phdr) <= HEADER_BYTES, "they fit");

/* Pages in a row that may all be executed, or none of them. */
struct run {
	struct gva_range range;
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
	struct look *look;
	const struct page_walk *walk;
	struct gva_range range; /* of the mapping */
	struct run runs[RUNS_MAX];
	size_t n_runs;
	struct {
		uint64_t start, stop;
	} found[BOUNDS]; /* as its symbols have them */
	int fd;
	uint8_t *file; /* the ELF: header, then the memory of `range`, then sections */
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
	return HEADER_BYTES + (gva - copy->range.first);
}

static bool runs_add(struct copy *copy, struct gva_range range, bool executable)
{
	struct run *last = copy->n_runs > 0 ? &copy->runs[copy->n_runs - 1] : NULL;

	if (last && gva_range_meets(last->range, range.first) && last->executable == executable) {
		last->range.bytes += range.bytes;
		return true;
	}
	if (copy->n_runs == RUNS_MAX)
		return false;
	copy->runs[copy->n_runs++] = (struct run){range, executable};
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
static bool copy_leaf(struct copy *copy, struct gva_range part, gpa_t gpa)
{
	struct guest *guest = copy->walk->guest;

	for (uint64_t done = 0, bytes; done < part.bytes; done += bytes) {
		bytes = MIN(part.bytes - done, PIECE_BYTES);
		if (!guest->ops->memory_read(guest, (gpa_t){gpa.value + done}, copy->piece, bytes))
			return false;
		pages_put(copy, part.first + done, bytes);
	}
	return true;
}

/* What is not mapped, or not RAM, stays zero: holes are normal, freed parts are unmapped. */
static bool copy_pages(struct copy *copy, GError **error)
{
	for (uint64_t done = 0, bytes; done < copy->range.bytes && !look_gave_up(copy->look); done += bytes) {
		const uint64_t gva = copy->range.first + done;
		struct page_leaf leaf;

		bytes = PAGE_BYTES;
		if (!page_walk_leaf(copy->walk, (gva_t){gva}, &leaf))
			continue;
		bytes = MIN(gva_range_left(leaf.page, gva), copy->range.bytes - done);
		const struct gva_range part = {gva, bytes};

		if (copy_leaf(copy, part, page_leaf_gpa(&leaf, gva)) && !runs_add(copy, part, leaf.executable))
			return fail(error, KERNEL_MEMORY_ERROR_NONE, "its mapping is in too many pieces");
	}
	if (look_gave_up(copy->look))
		return fail(error, KERNEL_MEMORY_ERROR_NONE, "its pages are too many to read");
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
		const struct gva_range *run = &copy->runs[i].range;

		g_clear_error(&why);
		if (kallsyms_decode(copy->file + offset_of(copy, run->first), run->bytes, run->first,
		                    &copy->look->steps_left, note_symbol, copy, &why))
			return true;
	}
	return fail(error, KERNEL_MEMORY_ERROR_NONE, why ? why->message : "nothing is mapped");
}

/* Section i; nothing where it was not found, or does not lie in the copy. */
static struct gva_range section_of(const struct copy *copy, size_t i)
{
	const struct gva_range section = gva_range_to(copy->found[i].start, copy->found[i].stop);

	return gva_range_holds(copy->range, section) ? section : (struct gva_range){0};
}

/* Names and headers behind the bytes; NULL: of `n` entries, how many there are. */
static void write_sections(struct copy *copy, Elf64_Ehdr *header)
{
	uint64_t at = HEADER_BYTES + copy->range.bytes;
	char *names = (char *)copy->file + at;
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(names + NAMES_BYTES);
	uint32_t used = 1;
	uint16_t n = 1;

	for (size_t i = 0; i < BOUNDS; i++) {
		const struct gva_range section = section_of(copy, i);

		if (section.bytes == 0)
			continue;
		sections[n++] = (Elf64_Shdr){.sh_name = used,
		                             .sh_type = SHT_PROGBITS,
		                             .sh_addr = section.first,
		                             .sh_offset = offset_of(copy, section.first),
		                             .sh_size = section.bytes};
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
	const struct gva_range *range = &run->range;

	return (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = run->executable ? PF_R | PF_X : PF_R | PF_W,
		.p_offset = offset_of(copy, range->first),
		.p_vaddr = range->first,
		.p_paddr = range->first - copy->range.first,
		.p_filesz = range->bytes,
		.p_memsz = range->bytes,
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
	const struct gva_range notes = section_of(copy, 0);

	if (notes.bytes > 0)
		segments[header.e_phnum++] = (Elf64_Phdr){.p_type = PT_NOTE,
		                                          .p_offset = offset_of(copy, notes.first),
		                                          .p_vaddr = notes.first,
		                                          .p_filesz = notes.bytes,
		                                          .p_align = 4};
	write_sections(copy, &header);
	memcpy(copy->file, &header, sizeof(header));
}

/* ---- the file ---- */

static bool file_map(struct copy *copy, GError **error)
{
	copy->file_bytes = HEADER_BYTES + copy->range.bytes + NAMES_BYTES + (BOUNDS + 2) * sizeof(Elf64_Shdr);
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

struct image *kernel_memory_image(struct look *look, const struct page_walk *walk, uint64_t code, int *fd,
                                  GError **error)
{
	struct copy copy = {
		.look = look, .walk = walk, .range = search_processor_of(walk->tables.processor)->extent(walk, code)};
	struct image *image = NULL;

	if (copy.range.bytes == 0) {
		fail(error, KERNEL_MEMORY_ERROR_NONE, "its code is not mapped");
		return NULL;
	}
	if (!look_take_kernel(look)) {
		fail(error, KERNEL_MEMORY_ERROR_NONE, "too much looked like one");
		return NULL;
	}
	copy.fd = sealed_new("vprof-kernel");
	if (file_fill(&copy, error))
		image = image_open_fd(IMAGE_GUEST_MEMORY, IMAGE_KERNEL, copy.fd, error);
	if (image) {
		image_set_of_guest(image);
		*fd = copy.fd;
	} else if (copy.fd >= 0) {
		close(copy.fd);
	}
	return image;
}
