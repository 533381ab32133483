// SPDX-License-Identifier: BSD-2-Clause
/* A table, and how symbols from some source become one: regions first, then symtab_add for each symbol. */
#ifndef VPROF_SYMBOL_SYMTAB_PRIV_H
#define VPROF_SYMBOL_SYMTAB_PRIV_H

#include "lib/symbol/symtab.h"

#define SYMTAB_NO_SYMBOL UINT32_MAX

/* From `start` to that of the next range, addresses belong to `symbol`, or to none. */
struct symtab_range {
	uint64_t start;
	uint32_t symbol;
};

struct symtab {
	const char *source;
	GStringChunk *names;
	struct symbol *symbols; /* [n_symbols] */
	size_t n_symbols;
	GArray *ranges;   /* of struct symtab_range, by start */
	GArray *nameless; /* of struct symbol: sections of code in which no symbol begins, under the section's name */
	struct symtab_packed *packed; /* in place of symbols and ranges, which are empty then; NULL */
	uint32_t *places;             /* [n_places] numbers of symbols, plus 1, by their names; NULL: no index */
	size_t n_places;              /* a power of two */
};

/* A part of the address space that symbols do not reach beyond: a section, or a segment of an image without any. */
struct symtab_region {
	uint64_t start;
	uint64_t end;
	bool code;
	const char *name; /* of the section, as long as the builder; NULL */
};

struct symtab_builder {
	GArray *candidates;
	GStringChunk *names;
	GArray *regions; /* of struct symtab_region, by start */
};

/* Empty regions, and those beyond the end of the address space, are left out. */
void symtab_add_region(GArray *regions, uint64_t start, uint64_t bytes, bool code, const char *name);

/* The builder owns `regions` from now on. */
void symtab_builder_init(struct symtab_builder *builder, GArray *regions);
void symtab_builder_deinit(struct symtab_builder *builder);

/* NULL when no symbol covers code. */
struct symtab *symtab_builder_finish(struct symtab_builder *builder, const char *source);

#endif
