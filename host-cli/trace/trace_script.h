// SPDX-License-Identifier: BSD-2-Clause
/* Scripts: `vprof trace` with programs, in a language like bpftrace's, instead of events. */
#ifndef VPROF_CLI_TRACE_TRACE_SCRIPT_H
#define VPROF_CLI_TRACE_TRACE_SCRIPT_H

#include "lib/script/script.h"
#include "trace/trace_maps.h"
#include "trace/trace_source.h"

/* Whether it is a script, and no probe alone. */
bool trace_text_is_script(const char *text);

struct trace_script;
/* `parameters`: of $1 and so on, up to NULL. Errors: SCRIPT_ERROR. */
struct trace_script *trace_script_new(const char *text, const char *const *parameters, GError **error);
/* Of one that was built; it is owned then. */
struct trace_script *trace_script_of(struct script *script);
void trace_script_free(struct trace_script *script); /* NULL is fine */

/*
 * Adds its probes, with their programs, to those of the source, which is borrowed. `map_keys`: that a map can have; 0:
 * as many as the engine likes. Errors: SCRIPT_ERROR, those of the engine.
 */
bool trace_script_add(struct trace_script *script, struct trace_source *source, const char *breakpoints,
                      uint64_t map_keys, GError **error);

/* The same for a script about all probes that the source has already, each by its name. */
bool trace_script_attach(struct trace_script *script, struct trace_source *source, uint64_t map_keys, GError **error);
/* The number of a map that the script has. */
size_t trace_script_map(const struct trace_script *script, const char *name);
/* What is in a map, by its number; NULL with an error. */
struct trace_map *trace_script_read(struct trace_script *script, size_t number, GError **error);

/* Does what an event of a program says. `json`: an object a line. */
bool trace_script_take(struct trace_script *script, const struct trace_event *event, bool json, FILE *out,
                       GError **error);
/* A program has called exit(). */
bool trace_script_exited(const struct trace_script *script);
/* Prints all maps. */
bool trace_script_finish(struct trace_script *script, bool json, FILE *out, GError **error);

#endif
