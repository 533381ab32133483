// SPDX-License-Identifier: BSD-2-Clause
/*
 * The code symbols of a table in little memory, for one that is kept for hours and asked a few times a
 * minute: distances of four bytes from the first address, and names in the order of the alphabet, of which each says
 * how much it has of the one before. What was asked for stays unpacked. One thread at a time.
 */
#ifndef VPROF_SYMBOL_SYMTAB_PACKED_H
#define VPROF_SYMBOL_SYMTAB_PACKED_H

#include "lib/symbol/symtab_priv.h"

struct symtab_packed;

/*
 * symbols: by address. Kept are those that a range names, and code between them. NULL: there are none, or they are
 * further than 4 GiB apart.
 */
struct symtab_packed *symtab_packed_new(const struct symbol *symbols, size_t n, const struct symtab_range *ranges,
                                        size_t n_ranges);
void symtab_packed_free(struct symtab_packed *packed);

/* As symtab_find and symtab_find_name. What they return lives as long as the table. */
const struct symbol *symtab_packed_find(const struct symtab_packed *packed, uint64_t address);
const struct symbol *symtab_packed_find_name(const struct symtab_packed *packed, const char *name);

#endif
