// SPDX-License-Identifier: BSD-2-Clause
#include "linux/module_symbols.h"

#include <elf.h>
#include <string.h>

#define BATCH 128u /* symbols that are read at a time */

struct listing {
	struct page_walk *walk;
	const struct module *module;
	uint64_t symbols, names; /* where they are */
	uint32_t n;
};

static bool is_code(const struct module *module, uint64_t address)
{
	for (unsigned i = 0; i < MODULE_PARTS; i++)
		if (address - module->parts[i].start < module->parts[i].bytes)
			return true;
	return false;
}

/* The page after the last one may not be mapped, so reads end at page ends. */
static bool name_read(struct page_walk *walk, uint64_t from, char name[MODULE_SYMBOL_NAME_BYTES])
{
	size_t n = 0;

	while (n < MODULE_SYMBOL_NAME_BYTES - 1) {
		size_t in_page = 4096 - ((from + n) & 4095), bytes = MIN(in_page, MODULE_SYMBOL_NAME_BYTES - 1 - n);

		if (!page_walk_read_kernel(walk, (gva_t){from + n}, name + n, bytes))
			break;
		if (memchr(name + n, '\0', bytes))
			return true;
		n += bytes;
	}
	name[n] = '\0';
	return n != 0;
}

static void batch_add(const struct listing *listing, struct symtab_builder *builder, const Elf64_Sym *symbols,
                      uint32_t n)
{
	char name[MODULE_SYMBOL_NAME_BYTES];

	for (uint32_t i = 0; i < n; i++) {
		bool local = ELF64_ST_BIND(symbols[i].st_info) == STB_LOCAL;

		if (symbols[i].st_shndx != SHN_UNDEF && is_code(listing->module, symbols[i].st_value) &&
		    name_read(listing->walk, listing->names + symbols[i].st_name, name))
			symtab_add(builder, symbols[i].st_value, symbols[i].st_size, local ? 't' : 'T', name, false);
	}
}

static void list(struct symtab_builder *builder, void *data)
{
	const struct listing *listing = data;
	Elf64_Sym symbols[BATCH];

	for (uint32_t i = 0; i < listing->n; i += BATCH) {
		uint32_t n = MIN(BATCH, listing->n - i);

		if (!page_walk_read_kernel(listing->walk, (gva_t){listing->symbols + (uint64_t)i * sizeof(*symbols)},
		                           symbols, n * sizeof(*symbols)))
			return;
		batch_add(listing, builder, symbols, n);
	}
}

static bool listing_open(struct listing *listing, const struct module_layout *layout)
{
	uint64_t table;

	return page_walk_read_kernel(listing->walk, (gva_t){listing->module->address + layout->kallsyms}, &table,
	                             sizeof(table)) &&
	       page_walk_read_kernel(listing->walk, (gva_t){table + layout->symbols}, &listing->symbols,
	                             sizeof(listing->symbols)) &&
	       page_walk_read_kernel(listing->walk, (gva_t){table + layout->names}, &listing->names,
	                             sizeof(listing->names)) &&
	       page_walk_read_kernel(listing->walk, (gva_t){table + layout->n_symbols}, &listing->n,
	                             sizeof(listing->n)) &&
	       listing->n <= MODULE_SYMBOLS_MAX;
}

struct symtab *module_symbols_read(const struct module_layout *layout, struct page_walk *walk,
                                   const struct module *module, uint64_t bytes_max)
{
	struct listing listing = {.walk = walk, .module = module};
	struct symtab_code code[MODULE_PARTS];

	if (!layout->has_kallsyms || !listing_open(&listing, layout))
		return NULL;
	for (unsigned i = 0; i < MODULE_PARTS; i++)
		code[i] = (struct symtab_code){module->parts[i].start, module->parts[i].bytes};
	return symtab_new_list("kallsyms", code, MODULE_PARTS, bytes_max, list, &listing);
}
