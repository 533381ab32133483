// SPDX-License-Identifier: BSD-2-Clause
/* Probes in a running engine, and their events. */
#ifndef VPROF_CLI_TRACE_TRACE_SOURCE_H
#define VPROF_CLI_TRACE_TRACE_SOURCE_H

#include "lib/client/client.h"
#include "trace/trace_event.h"

struct trace_source;

/* The engine, as engine_find has it. */
struct trace_source *trace_source_open(const char *engine, const char *symfs, GError **error);
void trace_source_close(struct trace_source *source);

/* In which processes probes of programs are; NULL and 0: in all. Borrowed. */
struct trace_processes {
	uint64_t pid;
	const char *comm, *cgroup;
};
void trace_source_choose(struct trace_source *source, const struct trace_processes *processes);

struct trace_options {
	char **registers; /* names, or NULL */
	char **paths;     /* fields of the guest's memory, or NULL; a probe has those that begin with its arguments */
	bool stack;
	const char *breakpoints; /* "any", "processor", "patch", or NULL */
};
/*
 * Of so many probes, some may not get a breakpoint of the processor. Then those that can be patches are, and leave
 * these for the others.
 */
#define TRACE_PROBES_SURE 4u
#define TRACE_PATCH "patch"
/* Asks the engine, as engine_ask. */
json_t *trace_source_ask(struct trace_source *source, const char *method, json_t *arguments, GError **error);
/*
 * Adds all probes that match to `names`, and to `bare` those of them without known arguments, from as many answers as
 * needed. `pattern` NULL: none. Returns the providers of the last answer (new reference), or NULL.
 */
json_t *trace_list_probes(struct client *client, const char *pattern, json_t *names, json_t *bare, GError **error);
/* The names of what matches a pattern, as many as a client can have probes (new reference). */
json_t *trace_source_matching(struct trace_source *source, const char *pattern, GError **error);
bool trace_source_add(struct trace_source *source, const char *probe, const struct trace_options *options,
                      GError **error);
/*
 * All functions or trace points that match a pattern (probe_name_is_pattern), as many as a client can have probes.
 * Those that cannot be probed are left out, with *left_out the number of them and *why the reason of the first; g_free.
 * An error if that is all of them.
 */
bool trace_source_add_all(struct trace_source *source, const char *pattern, const struct trace_options *options,
                          unsigned *left_out, char **why, GError **error);
/* The probes that were added, in their order; borrowed. */
size_t trace_source_count(const struct trace_source *source);
const struct trace_probe *trace_source_probe(const struct trace_source *source, size_t i);
/* How many of the probes are patches in the guest's code. */
unsigned trace_source_patches(const struct trace_source *source);
/* Whether one of the probes has that field, or every event has. */
bool trace_source_has_field(const struct trace_source *source, const char *field);
bool trace_source_record(struct trace_source *source, GError **error);

/*
 * Waits for up to timeout_ms, or until the guest's end, and then takes what is in the rings, sorted by time: an array
 * of struct trace_event that clears its elements. Those of one call need not be later than those of the call before on
 * another vCPU. NULL with an error.
 */
GArray *trace_source_read(struct trace_source *source, unsigned timeout_ms, GError **error);
bool trace_source_ended(const struct trace_source *source);

/* Stops recording. The next trace_source_read returns what is left in the rings. */
bool trace_source_stop(struct trace_source *source, GError **error);
/* What query-probes answers (new reference); NULL when the engine has gone. */
json_t *trace_source_statistics(struct trace_source *source);

/* The guest kernel's symbols; NULL if its image is not available. */
struct trace_names *trace_source_names(struct trace_source *source);

#endif
