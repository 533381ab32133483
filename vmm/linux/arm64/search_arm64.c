// SPDX-License-Identifier: BSD-2-Clause
/*
 * VBAR_EL1 is where the kernel takes exceptions: at `vectors` of its image, or at a copy of them in it that empties the
 * branch predictor first. With page table isolation, a vCPU that was last seen in user space has a trampoline there,
 * which leads to no image. The image is in one piece in physical memory, behind its own header.
 */
#include <inttypes.h>
#include <string.h>

#include "lib/profile/hash.h"
#include "linux/kernel_memory.h"
#include "linux/search_linux_priv.h"

#define HALF 63u /* the bit that addresses of the kernel have */
#define PAGE_BYTES UINT64_C(4096)
/* The image begins at a multiple of it (EFI_KIMG_ALIGN of arch/arm64/include/asm/efi.h), in both kinds of memory. */
#define HEADER_ALIGNMENT (UINT64_C(64) << 10)
#define VECTORS_BYTES UINT64_C(2048)

/* Documentation/arch/arm64/booting.rst */
struct image_header {
	uint32_t code[2];
	uint64_t text_offset, image_size, flags, reserved[3];
	char magic[4];
	uint32_t pe_offset;
};
_Static_assert(sizeof(struct image_header) == 64, "booting.rst");

static const struct {
	const char *name;
	unsigned copies;
} vectors[] = {{"vectors", 1}, {"__bp_harden_el1_vectors", 4}};

static bool early(const struct seen_vcpu *registers, GError **error)
{
	if (!registers->long_mode)
		g_set_error(
			error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_EARLY,
			"the guest is still in its firmware or boot loader: vCPU %u was last seen without page tables",
			registers->vcpu);
	return !registers->long_mode;
}

/* *end: where the image that begins at `gpa` ends, if one does, in bytes from there. */
static bool header_read(struct guest *guest, uint64_t gpa, uint64_t *bytes)
{
	struct image_header header;

	if (!guest->ops->memory_read(guest, (gpa_t){gpa}, &header, sizeof(header)) ||
	    memcmp(header.magic, "ARM\x64", sizeof(header.magic)) != 0 || header.image_size > KERNEL_MEMORY_BYTES_MAX)
		return false;
	*bytes = (header.image_size + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	return true;
}

static struct gva_range extent_find(const struct page_walk *walk, uint64_t code)
{
	const struct gva_range none = {0};
	struct page_leaf leaf;
	uint64_t bytes;

	if (!page_walk_leaf(walk, (gva_t){code}, &leaf))
		return none;
	const uint64_t gpa = page_leaf_gpa(&leaf, code).value;

	for (uint64_t before = code & (HEADER_ALIGNMENT - 1); before < KERNEL_MEMORY_BYTES_MAX && before <= gpa;
	     before += HEADER_ALIGNMENT)
		if (header_read(walk->guest, gpa - before, &bytes))
			return bytes > before && before <= code ? gva_range_cut(code - before, bytes) : none;
	return none;
}

/* Whether the address is one of its vectors. */
static bool is_vectors(const struct symtab *symtab, uint64_t address)
{
	for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++) {
		const uint64_t at = symtab_address(symtab, vectors[i].name);

		if (at != 0 && address - at < vectors[i].copies * VECTORS_BYTES)
			return true;
	}
	return false;
}

/* The kernel's own symbols must agree with where the vectors are. */
static bool check(struct image *image, uint64_t address, GError **error)
{
	struct symtab *symtab = symtab_load_keeping(image, error);

	if (!symtab)
		return false;
	const bool agrees = is_vectors(symtab, address);

	symtab_free(symtab);
	if (!agrees)
		g_set_error(
			error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_NONE,
			"the kernel in the guest's memory contradicts itself: its vectors are not at VBAR_EL1, 0x%" PRIx64,
			address);
	return agrees;
}

static bool code_find(const struct seen_vcpu *registers, GError **error)
{
	return registers->vectors >> HALF || search_none("its vectors (VBAR_EL1) are not where Linux is", error);
}

static bool find(struct look *look, const struct seen_vcpu *registers, struct kernel_found *found, GError **error)
{
	struct page_walk walk;

	if (!code_find(registers, error))
		return false;
	page_walk_init_regs(&walk, &look->guest, &registers->regs);
	found->image = kernel_memory_image(look, &walk, registers->vectors, &found->fd, error);
	return found->image && check(found->image, registers->vectors, error) &&
	       (image_is_linux(found->image) || search_none("its memory has no Linux banner", error));
}

static bool slide(struct guest *guest, const struct seen_vcpu *registers, struct kernel_found *found, GError **error)
{
	struct symtab *symtab = code_find(registers, error) ? symtab_load(found->image, error) : NULL;
	struct page_walk walk;
	bool done = false;

	if (!symtab)
		return false;
	page_walk_init_regs(&walk, guest, &registers->regs);
	for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++) {
		const uint64_t at = symtab_address(symtab, vectors[i].name);

		for (unsigned copy = 0; at != 0 && !done && copy < vectors[i].copies; copy++)
			done = kernel_find_slide(found, &walk, registers->vectors - at - copy * VECTORS_BYTES, error);
	}
	symtab_free(symtab);
	if (done)
		g_clear_error(error);
	else if (error && !*error)
		search_none("the symbols of the image given lack vectors", error);
	return done;
}

/* Which tables the kernel's half has, and what is at its vectors. */
static uint64_t mark_make(struct guest *guest, const struct seen_vcpu *registers)
{
	const struct guest_tables_arm64 *tables = &registers->regs.arm64.tables;
	struct page_walk walk;
	uint64_t word;

	page_walk_init_regs(&walk, guest, &registers->regs);
	if (!page_walk_read(&walk, (gva_t){registers->vectors}, &word, sizeof(word)))
		word = 0;
	return hash_mix(word ^ hash_mix(registers->vectors ^ hash_mix(tables->ttbr1 ^ hash_mix(tables->tcr))));
}

const struct search_processor search_arm64 = {
	.early = early,
	.find = find,
	.slide = slide,
	.mark = mark_make,
	.extent = extent_find,
};
