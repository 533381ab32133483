// SPDX-License-Identifier: BSD-2-Clause
/*
 * Maps of programs (vprof/program.h): of a fixed size, changed by all vCPU threads without a lock, and read by the main
 * thread meanwhile. Two vCPUs that add the same new key at the same moment may make two entries of it, which a reader
 * adds up; a change that meets a deletion of its key may be lost.
 */
#ifndef VPROF_PROBE_PROGRAM_MAP_H
#define VPROF_PROBE_PROGRAM_MAP_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <vprof/program.h>

#define PROGRAM_ERROR program_error_quark()
GQuark program_error_quark(void);
enum program_error {
	PROGRAM_ERROR_INVALID, /* breaks a rule of vprof/program.h */
	PROGRAM_ERROR_LIMIT,   /* more than there can be */
};

struct program_map_spec {
	enum vprof_map_kind kind;
	unsigned key_words;       /* 0: one entry, without a key */
	unsigned entries;         /* with keys: 1..VPROF_MAP_ENTRIES_MAX */
	int64_t low, high, range; /* lhist: from, below, and how many numbers each range has */
};

struct program_map;
/* Errors: PROGRAM_ERROR. */
struct program_map *program_map_new(const struct program_map_spec *spec, GError **error);
void program_map_free(struct program_map *map); /* NULL is fine */
const struct program_map_spec *program_map_spec(const struct program_map *map);
unsigned program_map_value_words(const struct program_map *map);
size_t program_map_bytes(const struct program_map *map);

/* On any vCPU's thread; no lock, no allocation, bounded. False: the key did not fit, which is counted. */
bool program_map_set(struct program_map *map, const uint64_t *key, const uint64_t *value);
bool program_map_add(struct program_map *map, const uint64_t *key, int64_t number);
void program_map_delete(struct program_map *map, const uint64_t *key);
/* One word, or those of a text; of an avg, the average. False, and zeros, without such a key. */
bool program_map_get(const struct program_map *map, const uint64_t *key, uint64_t *value);

/* ---- main thread ---- */

/*
 * The next entry at *place or behind it, from 0 on, which then is behind it: the words of its key, then those of its
 * value. False: there is none.
 */
bool program_map_next(const struct program_map *map, size_t *place, uint64_t *words);
/* Removes all entries, or sets their values to what they begin with. */
void program_map_clear(struct program_map *map, bool keep_keys);
/* Changes that did not fit. */
uint64_t program_map_dropped(const struct program_map *map);

#endif
