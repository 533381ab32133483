// SPDX-License-Identifier: BSD-2-Clause
/*
 * The unwind tables of programs and libraries, by build-id. Clients make them of the files (lib/symbol/cfi.h), and the
 * samplers find them. Tables are only added: what a vCPU's thread has found stays until the store is freed. And where
 * the guest has these files, for clients that have not.
 */
#ifndef VPROF_SAMPLE_TABLE_STORE_H
#define VPROF_SAMPLE_TABLE_STORE_H

#include <glib.h>
#include <stdint.h>

#include "lib/symbol/cfi.h"
#include "lib/symbol/python_file.h"
#include "sample/file_places.h"

#define TABLE_STORE_TABLES_MAX 1024u
#define TABLE_STORE_BYTES_MAX (UINT64_C(512) << 20) /* of all tables together */

struct table_store;

/* All but table_store_places, table_store_count and table_store_find: main thread only. */
struct table_store *table_store_new(void);
void table_store_free(struct table_store *store);

/*
 * Memory of this size for a table that a client writes: a descriptor, which the store keeps until it is added. Another
 * one replaces it. Error: SESSION_ERROR.
 */
int table_store_prepare(struct table_store *store, uint64_t bytes, GError **error);
/*
 * Adds what was written; from then on, nobody can change it. False when it is not a table, the store is full, or the
 * client can still write to it through a mapping. A build-id that is there already keeps its table, unless the new one
 * has more rows: of a file that was not all there before. python: what the client found in the file.
 */
bool table_store_add(struct table_store *store, const uint8_t *build_id, size_t build_id_bytes,
                     const struct python_file *python, GError **error);

struct file_places *table_store_places(struct table_store *store);

/* Any thread; no lock, no allocation. The number of tables never falls: one that was not found may be there later. */
unsigned table_store_count(const struct table_store *store);
const struct cfi_table *table_store_find(const struct table_store *store, const uint8_t *build_id,
                                         size_t build_id_bytes);
/* Of the file that a table which was found is of. */
const struct python_file *table_store_python(const struct cfi_table *table);

#endif
