// SPDX-License-Identifier: BSD-2-Clause
/* The symbols of an image: its .symtab (System V ABI, "Symbol Table"), else kallsyms. */
#include <elf.h>

#include "lib/symbol/image_priv.h"
#include "lib/symbol/kallsyms.h"
#include "lib/symbol/symtab_priv.h"

#define SYMBOLS_MAX (UINT32_C(1) << 24) /* sixteen times those of allyesconfig */

static char section_letter(const Elf64_Shdr *section)
{
	if (section->sh_flags & SHF_EXECINSTR)
		return 't';
	if (section->sh_type == SHT_NOBITS)
		return 'b';
	return section->sh_flags & SHF_WRITE ? 'd' : 'r';
}

/* nm(1)'s letter. `section`: NULL for an absolute symbol. */
static char symbol_letter(const Elf64_Sym *symbol, const Elf64_Shdr *section)
{
	unsigned bind = ELF64_ST_BIND(symbol->st_info);
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (bind == STB_WEAK)
		return type == STT_OBJECT ? 'V' : 'W';

	char letter = section ? section_letter(section) : 'a';

	return bind == STB_LOCAL ? letter : g_ascii_toupper(letter);
}

static void add_symbol(struct symtab_builder *builder, const struct image *image, const Elf64_Sym *symbol,
                       const char *name)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	const Elf64_Shdr *section = NULL;

	if (symbol->st_shndx == SHN_UNDEF || type == STT_SECTION || type == STT_FILE || type == STT_TLS)
		return;
	if (symbol->st_shndx < image->n_sections)
		section = &image->sections[symbol->st_shndx];
	else if (symbol->st_shndx != SHN_ABS)
		return;

	if (image->kind == IMAGE_MODULE && (!section || !(section->sh_flags & SHF_ALLOC)))
		return;

	/* A module is not linked: its symbols count from their sections. */
	uint64_t address =
		image->kind == IMAGE_MODULE && section ? section->sh_addr + symbol->st_value : symbol->st_value;
	bool ends = section && section->sh_size > 0 && address - section->sh_addr == section->sh_size;

	symtab_add(builder, address, symbol->st_size, symbol_letter(symbol, section), name, ends);
}

static bool check_table(const struct image *image, size_t index, GError **error)
{
	const Elf64_Shdr *header = &image->sections[index];
	size_t bytes = image_section_span(image, index).n;

	if (header->sh_entsize == sizeof(Elf64_Sym) && bytes % sizeof(Elf64_Sym) == 0 &&
	    bytes / sizeof(Elf64_Sym) <= SYMBOLS_MAX && header->sh_link < image->n_sections)
		return true;
	g_set_error(
		error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT,
		"section %zu has %zu bytes in entries of %zu, %u at most, and names in section %u of %zu; strip it or build it again",
		index, bytes, (size_t)header->sh_entsize, SYMBOLS_MAX, header->sh_link, image->n_sections);
	return false;
}

static bool add_table(struct symtab_builder *builder, const struct image *image, size_t index, GError **error)
{
	struct span table = image_section_span(image, index);
	struct span names = image_section_span(image, image->sections[index].sh_link);
	size_t names_bytes = 0;

	for (size_t offset = 0; offset < table.n; offset += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		if (!image_has(image, table.data + offset, sizeof(symbol)))
			continue;
		memcpy(&symbol, table.data + offset, sizeof(symbol));

		const char *name = span_string(names, symbol.st_name);

		/* Names may share their ends, but a table of symbols that all have one huge name is an attack. */
		if (!name || (names_bytes += strlen(name)) > image->bytes.n) {
			g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT,
			            "symbol %zu has its name at offset %u of %zu bytes; strip it or build it again",
			            offset / sizeof(symbol), symbol.st_name, names.n);
			return false;
		}
		if (image_has(image, (const uint8_t *)name, strlen(name) + 1))
			add_symbol(builder, image, &symbol, name);
	}
	return true;
}

/* Everything in the SHT_SYMTAB or SHT_DYNSYM; nothing when there is none. Errors: SYMTAB_ERROR_CORRUPT. */
static bool add_elf(struct symtab_builder *builder, const struct image *image, uint32_t type, GError **error)
{
	for (size_t i = 0; i < image->n_sections; i++)
		if (image->sections[i].sh_type == type)
			return check_table(image, i, error) && add_table(builder, image, i, error);
	return true;
}

static void add_sections(GArray *regions, const struct image *image)
{
	for (size_t i = 0; i < image->n_sections; i++) {
		const Elf64_Shdr *section = &image->sections[i];

		if (section->sh_flags & SHF_ALLOC)
			symtab_add_region(regions, section->sh_addr, section->sh_size,
			                  section->sh_flags & SHF_EXECINSTR,
			                  span_string(image->section_names, section->sh_name));
	}
}

static void add_segments(GArray *regions, const struct image *image)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];

		symtab_add_region(regions, segment->gva, segment->memory_bytes, segment->flags & PF_X, NULL);
	}
}

static GArray *regions_new(const struct image *image)
{
	GArray *regions = g_array_new(false, false, sizeof(struct symtab_region));

	add_sections(regions, image);
	if (regions->len == 0)
		add_segments(regions, image);
	return regions;
}

static void add_kallsyms(uint64_t address, char type, const char *name, void *data)
{
	/* The two ends that scripts/kallsyms.c keeps (text_ranges); and data, which a segment may have beside code. */
	bool ends = strcmp(name, "_etext") == 0 || strcmp(name, "_einittext") == 0 || !strchr("TtWw?", type);

	symtab_add(data, address, 0, type, name, ends);
}

static struct symtab *load_table(const struct image *image, uint32_t type, const char *source, uint64_t bytes_max,
                                 GError **error)
{
	struct symtab_builder builder;
	struct symtab *symtab = NULL;

	symtab_builder_init(&builder, regions_new(image), bytes_max);
	if (add_elf(&builder, image, type, error)) {
		if (image->kind == IMAGE_KERNEL)
			symtab_settle_data(&builder);
		symtab = symtab_builder_finish(&builder, source);
	}
	symtab_builder_deinit(&builder);
	return symtab;
}

/* kallsyms are read-only data and so in one segment. */
static struct symtab *load_kallsyms(const struct image *image, uint64_t bytes_max, GError **error)
{
	struct symtab_builder builder;
	struct symtab *symtab = NULL;
	g_autoptr(GError) cause = NULL;
	uint64_t steps = KALLSYMS_STEPS_MAX;

	symtab_builder_init(&builder, regions_new(image), bytes_max);
	for (size_t i = 0; i < image->n_segments && !symtab; i++) {
		const struct image_segment *segment = &image->segments[i];

		g_clear_error(&cause);
		if (kallsyms_decode(image->bytes.data + segment->file_offset, (size_t)segment->file_bytes, segment->gva,
		                    &steps, add_kallsyms, &builder, &cause)) {
			symtab_settle_data(&builder);
			symtab = symtab_builder_finish(&builder, "kallsyms");
		} else if (g_error_matches(cause, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT))
			break;
	}
	symtab_builder_deinit(&builder);
	if (symtab)
		return symtab;
	if (g_error_matches(cause, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT))
		g_propagate_error(error, g_steal_pointer(&cause));
	return NULL;
}

struct symtab *symtab_parse(const struct image *image, uint64_t bytes_max, GError **error)
{
	GError *cause = NULL;
	struct symtab *symtab = load_table(image, SHT_SYMTAB, "symtab", bytes_max, &cause);

	if (cause) {
		g_propagate_error(error, cause);
		return NULL;
	}
	if (symtab)
		return symtab;
	/* What a stripped program offers to be linked with. */
	return image->kind == IMAGE_KERNEL ? load_kallsyms(image, bytes_max, error)
	                                   : load_table(image, SHT_DYNSYM, "dynsym", bytes_max, error);
}
