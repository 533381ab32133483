// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linux's compressed symbol table, decoded from memory (Linux, scripts/kallsyms.c and kernel/kallsyms.c). The tables
 * are found by their content, since a stripped image names nothing. Layouts: up to 6.1 (offsets, relative_base,
 * num_syms, names, markers, token_table, token_index), with seqs_of_names (6.2, Debian's 6.1), and from 6.4 on, where
 * num_syms and names come first and the offsets last; base-relative, with and without absolute per-CPU symbols, and
 * absolute addresses.
 */
#ifndef VPROF_SYMBOL_KALLSYMS_H
#define VPROF_SYMBOL_KALLSYMS_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Calls `each` for every symbol, in the table's order. `bytes` is the (uncompressed) kernel image or a copy of guest
 * memory. Errors: SYMTAB_ERROR_NONE when no table is found, SYMTAB_ERROR_CORRUPT when one is and does not decode.
 */
bool kallsyms_decode(const uint8_t *bytes, size_t n,
                     void (*each)(uint64_t address, char type, const char *name, void *data), void *data,
                     GError **error);

#endif
