// SPDX-License-Identifier: BSD-2-Clause
/* A table, and how symbols from some source become one: regions first, then symtab_add for each symbol. */
#ifndef VPROF_SYMBOL_SYMTAB_PRIV_H
#define VPROF_SYMBOL_SYMTAB_PRIV_H

#include <string.h>
#include <vprof/parse.h>

#include "lib/symbol/symtab.h"

#define SYMTAB_NO_SYMBOL UINT32_MAX
#define SYMTAB_HEADS_BYTES 256u /* of an answer's tables, with what pads them and the source's name */

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
	uint64_t names_bytes;
	uint64_t left_out; /* symbols */
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
	uint64_t room;   /* for symbols and names */
	uint64_t left_out;
	uint64_t cut; /* the lowest address of a symbol that was left out */
};

/*
 * Linux' .data is executable in its ELF file since 6.16: what its symbol tables have for code between _sdata and _edata
 * is data.
 */
void symtab_settle_data(struct symtab_builder *builder);

/* Empty regions, and those beyond the end of the address space, are left out. */
void symtab_add_region(GArray *regions, uint64_t start, uint64_t bytes, bool code, const char *name);

/*
 * What a symbol takes in the answer, at most: a range begins with it, and one where it ends, if it has a size and so
 * may be nested in another one.
 */
static inline uint64_t symtab_symbol_bytes(uint64_t size, const char *name)
{
	const uint64_t ranges = size == 0 ? 1 : 2;

	return sizeof(struct vprof_parse_symbol) + ranges * sizeof(struct vprof_parse_range) + strlen(name) + 1;
}

/* The builder owns `regions` from now on. bytes_max: as of symtab_parse. */
void symtab_builder_init(struct symtab_builder *builder, GArray *regions, uint64_t bytes_max);
void symtab_builder_deinit(struct symtab_builder *builder);

/* NULL when no symbol covers code, unless some were left out. */
struct symtab *symtab_builder_finish(struct symtab_builder *builder, const char *source);

#endif
