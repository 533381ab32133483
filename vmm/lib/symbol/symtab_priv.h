// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a source of symbols hands to symtab.c.
 */
#ifndef VPROF_SYMBOL_SYMTAB_PRIV_H
#define VPROF_SYMBOL_SYMTAB_PRIV_H

#include "lib/symbol/symtab.h"

/* symtab_elf.c: everything in the SHT_SYMTAB or SHT_DYNSYM; nothing when there is none. Errors: SYMTAB_ERROR_CORRUPT.
 */
bool symtab_add_elf(struct symtab_builder *builder, const struct image *image, uint32_t type, GError **error);

#endif
