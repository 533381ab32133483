// SPDX-License-Identifier: BSD-2-Clause
/* What is in a map of a script's programs, and its values as texts. */
#ifndef VPROF_CLI_TRACE_TRACE_MAPS_H
#define VPROF_CLI_TRACE_TRACE_MAPS_H

#include "lib/script/script.h"
#include "trace/trace_names.h"

/* What a value means. */
struct trace_meaning {
	const struct script *script;
	struct trace_names *names;
};

/* A value of a program, which its type says the words of. New string. */
char *trace_value_text(const struct trace_meaning *meaning, enum script_type type, const uint64_t *words);

struct trace_map;
struct trace_map *trace_map_new(const struct trace_meaning *meaning, size_t number);
void trace_map_free(struct trace_map *map);
/* Takes "entries" of probe-map-read. Entries of one key are added up. */
void trace_map_take(struct trace_map *map, const json_t *entries);
bool trace_map_is_empty(const struct trace_map *map);
void trace_map_each(const struct trace_map *map, void (*each)(void *data, const uint64_t *key, const uint64_t *value),
                    void *data);
/* As bpftrace prints them, in the order of the values. `top`: only the last of them, 0: all; `div`: 0: 1. */
void trace_map_print(const struct trace_map *map, uint64_t top, uint64_t div, FILE *out);
json_t *trace_map_json(const struct trace_map *map, uint64_t top, uint64_t div);

#endif
