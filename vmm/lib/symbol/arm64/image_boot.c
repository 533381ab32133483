// SPDX-License-Identifier: BSD-2-Clause
/*
 * Boot images of Linux for arm64 (Documentation/arch/arm64/booting.rst): the kernel as it lies in memory, with a header
 * and without an ELF file's tables. What those would say is found by its content. Distributions have it plain, or
 * packed (image_zboot.c).
 */
#include <inttypes.h>

#include "lib/symbol/image_priv.h"
#include "lib/symbol/kallsyms.h"

/* booting.rst, "Call the kernel image". */
#define HEADER_TEXT_OFFSET 8u
#define HEADER_IMAGE_SIZE 16u
#define HEADER_FLAGS 24u
#define HEADER_MAGIC 56u
#define HEADER_BYTES 64u
#define FLAG_BIG_ENDIAN 1u

/* The kernel lies text_offset behind an address of this alignment; the first such is left free. */
#define PLACE_ALIGNMENT (UINT64_C(2) << 20)
#define LINK_ALIGNMENT (UINT64_C(64) << 10) /* KIMAGE_VADDR, by its largest pages */
#define TEXT_OFFSET_MAX (UINT64_C(16) << 20)
#define RELOCATIONS_MIN 64u
#define KERNEL_HALF (UINT64_C(1) << 63)

/* A vDSO is an ELF file inside the kernel, with a build-id of its own, on a page and of two of them. */
#define VDSO_BYTES_MAX (UINT64_C(16) << 10)
#define VDSO_ALIGNMENT 4096u

bool image_is_boot_file(struct span file)
{
	return span_holds(file, 0, HEADER_BYTES) && memcmp(file.data + HEADER_MAGIC, "ARM\x64", 4) == 0;
}

static uint64_t word_at(struct span bytes, uint64_t offset)
{
	uint64_t word = 0;

	span_read(bytes, offset, &word, sizeof(word));
	return word;
}

/* The longest run of Elf64_Rela with R_AARCH64_RELATIVE, by which the kernel moves itself; an empty span: none. */
static struct span relocations_find(struct span bytes)
{
	struct span found = {NULL, 0};
	uint64_t at = sizeof(uint64_t);

	while (at + 2 * sizeof(uint64_t) <= bytes.n) {
		const uint64_t first = at - sizeof(uint64_t);
		size_t n = 0;

		for (; at + 2 * sizeof(uint64_t) <= bytes.n && word_at(bytes, at) == R_AARCH64_RELATIVE; n++)
			at += sizeof(Elf64_Rela);
		if (n * sizeof(Elf64_Rela) > found.n)
			found = (struct span){bytes.data + first, n * sizeof(Elf64_Rela)};
		if (n == 0)
			at += sizeof(uint64_t);
	}
	return found.n >= RELOCATIONS_MIN * sizeof(Elf64_Rela) ? found : (struct span){NULL, 0};
}

/* Relocations have the addresses for which the kernel is linked; the lowest that one stores is that of its start. */
static bool link_from_relocations(struct span bytes, uint64_t image_bytes, uint64_t *gva)
{
	const struct span table = relocations_find(bytes);
	uint64_t lowest = UINT64_MAX, first = UINT64_MAX, last = 0;

	for (size_t at = 0; at < table.n; at += sizeof(Elf64_Rela)) {
		Elf64_Rela entry;

		memcpy(&entry, table.data + at, sizeof(entry));
		first = MIN(first, entry.r_offset);
		last = MAX(last, entry.r_offset);
		if ((uint64_t)entry.r_addend >= KERNEL_HALF)
			lowest = MIN(lowest, (uint64_t)entry.r_addend);
	}
	*gva = lowest;
	return table.n > 0 && lowest % LINK_ALIGNMENT == 0 && first >= lowest && last - lowest < image_bytes;
}

static void take_start(uint64_t address, char type, const char *name, void *data)
{
	uint64_t *start = data;

	(void)type;
	if (*start == 0 && strcmp(name, "_text") == 0)
		*start = address;
}

/* A kernel that does not move itself, or by relocations of another kind (RELR), has the addresses in its symbols. */
static bool link_from_symbols(struct span bytes, uint64_t *gva)
{
	uint64_t steps = KALLSYMS_STEPS_MAX;

	*gva = 0;
	kallsyms_decode(bytes.data, bytes.n, 0, &steps, take_start, gva, NULL);
	return *gva >= KERNEL_HALF && *gva % LINK_ALIGNMENT == 0;
}

static bool is_in_vdso(struct span bytes, uint64_t at)
{
	const uint64_t page = at - at % VDSO_ALIGNMENT;

	for (uint64_t back = 0; back <= MIN(page, VDSO_BYTES_MAX); back += VDSO_ALIGNMENT)
		if (memcmp(bytes.data + page - back, ELFMAG, SELFMAG) == 0)
			return true;
	return false;
}

static void build_id_find(struct image *image)
{
	static const uint8_t note[] = {4, 0, 0, 0, 20, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0};
	const struct span bytes = image->bytes;
	const uint8_t *at = bytes.data, *end = at + bytes.n;

	while ((at = memmem(at, (size_t)(end - at), note, sizeof(note)))) {
		const uint64_t offset = (uint64_t)(at - bytes.data);

		if (offset % 4 == 0 && !is_in_vdso(bytes, offset)) {
			image_walk_notes(image, offset, sizeof(note) + 20, 4);
			return;
		}
		at += sizeof(note);
	}
}

/* Linux, Documentation/bpf/btf.rst: its header with a version of 1, no flags and 24 bytes, and types at its end. */
static bool types_find(struct span bytes, struct span *types)
{
	static const uint8_t magic[] = {0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0};
	const uint8_t *at = bytes.data, *end = at + bytes.n;

	while ((at = memmem(at, (size_t)(end - at), magic, sizeof(magic)))) {
		const uint64_t offset = (uint64_t)(at - bytes.data);
		uint32_t parts[3]; /* the bytes of types; where text begins, and its bytes */

		if (span_read(bytes, offset + sizeof(magic), parts, sizeof(parts)) && parts[1] == parts[0] &&
		    parts[2] > 0 &&
		    span_slice(bytes, offset, sizeof(magic) + sizeof(parts) + (uint64_t)parts[1] + parts[2], types))
			return true;
		at += sizeof(magic);
	}
	return false;
}

/* The one section whose users know no other way to it. */
static void sections_make(struct image *image)
{
	static const char names[] = "\0.BTF";
	struct span types;

	if (!types_find(image->bytes, &types))
		return;
	image->sections = g_new0(Elf64_Shdr, 1);
	image->n_sections = 1;
	image->section_names = (struct span){(const uint8_t *)names, sizeof(names)};
	image->sections[0] = (Elf64_Shdr){.sh_name = 1,
	                                  .sh_type = SHT_PROGBITS,
	                                  .sh_offset = (uint64_t)(types.data - image->bytes.data),
	                                  .sh_size = types.n};
}

bool image_parse_boot(struct image *image, GError **error)
{
	const struct span bytes = image->bytes;
	const uint64_t text_offset = word_at(bytes, HEADER_TEXT_OFFSET);
	const uint64_t image_bytes = word_at(bytes, HEADER_IMAGE_SIZE);
	uint64_t gva;

	if (word_at(bytes, HEADER_FLAGS) & FLAG_BIG_ENDIAN)
		return image_fail(image, error, IMAGE_ERROR_CLASS,
		                  "it is a big-endian kernel; give one that is little-endian");
	if (image_bytes < bytes.n || image_bytes > IMAGE_BYTES_MAX || text_offset > TEXT_OFFSET_MAX ||
	    text_offset % VDSO_ALIGNMENT != 0)
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "its header says that it has 0x%" PRIx64 " bytes in memory, 0x%" PRIx64
		                  " behind a boundary of 2 MiB, and the image has 0x%zx; copy or build it again",
		                  image_bytes, text_offset, bytes.n);
	if (!link_from_relocations(bytes, image_bytes, &gva) && !link_from_symbols(bytes, &gva))
		return image_fail(image, error, IMAGE_ERROR_SEGMENTS,
		                  "neither relocations nor kallsyms say where its code is linked; build Linux with "
		                  "CONFIG_KALLSYMS");
	image->arch = ARCH_ARM64;
	image->is_linux = true;
	image->entry = PLACE_ALIGNMENT + text_offset;
	image->segments[image->n_segments++] = (struct image_segment){.gpa = image->entry,
	                                                              .gva = gva,
	                                                              .file_bytes = bytes.n,
	                                                              .memory_bytes = image_bytes,
	                                                              .flags = PF_R | PF_W | PF_X};
	sections_make(image);
	build_id_find(image);
	return true;
}
