// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linux's compressed symbol table, decoded from memory (Linux, scripts/kallsyms.c and kernel/kallsyms.c). The tables
 * are found by their content, since a stripped image names nothing. Their orders:
 *
 *   to 6.3    addresses, num_syms, names, markers, [seqs_of_names], token_table, token_index
 *   from 6.4  num_syms, names, markers, token_table, token_index, addresses, seqs_of_names
 *
 * seqs_of_names came with 6.2 and with Debian's 6.1. "addresses" is one of
 *   - 64-bit addresses (to 4.5; a configuration without KALLSYMS_BASE_RELATIVE to 6.10),
 *   - 32-bit offsets and the 64-bit base they count from (KALLSYMS_BASE_RELATIVE, from 4.6),
 *   - the same with per-CPU symbols as absolute offsets (KALLSYMS_ABSOLUTE_PERCPU, to 6.14; offsets from the base are
 *     stored as -1 - offset then),
 *   - 32-bit distances from the entry itself ("kallsyms: Get rid of kallsyms relative base", 2026).
 */
#ifndef VPROF_SYMBOL_KALLSYMS_H
#define VPROF_SYMBOL_KALLSYMS_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How many strings, places and names a search may look at. A kernel of a distribution takes a million, allyesconfig
 * six; so many are done in half a second.
 */
#define KALLSYMS_STEPS_MAX (UINT64_C(1) << 24)

/*
 * Calls `each` for every symbol, in the table's order, which is by address; `name` lasts for the call. `bytes` is a
 * segment of an (uncompressed) kernel image or a copy of guest memory, and `gva` the address of its first byte. *steps
 * are left for this search, which takes its own from them. Errors: SYMTAB_ERROR_NONE when no table is found, or no
 * steps are left, SYMTAB_ERROR_CORRUPT when one is found and does not decode; `each` has not been called then.
 */
bool kallsyms_decode(const uint8_t *bytes, size_t n, uint64_t gva, uint64_t *steps,
                     void (*each)(uint64_t address, char type, const char *name, void *data), void *data,
                     GError **error);

#endif
