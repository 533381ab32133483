// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a compiler at run time says of the code that it makes: /tmp/perf-PID.map, a line "START SIZE NAME" for each
 * function, in hexadecimal digits (Linux, tools/perf/Documentation/jit-interface.txt), or jit-PID.dump, records in
 * binary (jitdump-specification.txt there), which begins with a magic number. A hostile file at worst gives wrong
 * names: lines that are none are left out, and so is what follows a record that is none.
 */
#ifndef VPROF_SYMBOL_PERF_MAP_H
#define VPROF_SYMBOL_PERF_MAP_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_MAP_SYMBOLS_MAX 1048576u
/* What all maps of a guest may take together: 100,000 functions with names of 60 characters. */
#define PERF_MAP_BYTES_MAX (UINT64_C(8) << 20)

struct perf_map;

struct perf_map_symbol {
	uint64_t start, size;
	const char *name; /* printable; lives as long as the map */
};

/*
 * Of the file in `memory`, which stays the caller's, by vprof-parse; what is beyond bytes_max is left out. NULL with
 * PARSER_ERROR, as a clause without a subject.
 */
struct perf_map *perf_map_load(int memory, uint64_t bytes_max, GError **error);
/* Of what vprof-parse says, which is checked. NULL: it contradicts itself. */
struct perf_map *perf_map_decode(GBytes *answer);
/* In there: what it says of the bytes of a file. */
GByteArray *perf_map_encode(const char *file, size_t bytes, uint64_t bytes_max);
void perf_map_free(struct perf_map *map);

/* The function at this address. Where several are, the last one in the file: it has taken the place of the others. */
bool perf_map_find(const struct perf_map *map, uint64_t address, struct perf_map_symbol *symbol);

size_t perf_map_n_symbols(const struct perf_map *map);
/* How many functions the file has beyond the limit, and what the others take of it. */
uint64_t perf_map_left_out(const struct perf_map *map);
uint64_t perf_map_bytes(const struct perf_map *map);

#endif
