// SPDX-License-Identifier: BSD-2-Clause
/*
 * Filters, counts and histograms as options ask for them. They become programs of the language of scripts (lib/script),
 * so that an event that is not wanted costs no record, and what is counted stays in the engine until the end. A filter
 * about names that only this side knows, as of functions, is left for the rows of the maps, or for the events.
 */
#ifndef VPROF_CLI_TRACE_TRACE_QUERY_H
#define VPROF_CLI_TRACE_TRACE_QUERY_H

#include <stdio.h>

#include "trace/trace_source.h"

struct trace_query_options {
	char **filters, **counts, **hists; /* as they were written, or NULL; borrowed */
};

struct trace_query;
/* Errors: TRACE_ERROR. */
struct trace_query *trace_query_new(const struct trace_query_options *options, GError **error);
void trace_query_free(struct trace_query *query); /* NULL is fine */

/* The fields that it is about; borrowed texts, up to NULL. */
const char *const *trace_query_fields(const struct trace_query *query);
/* Whether it counts, and prints no events. */
bool trace_query_counts(const struct trace_query *query);
/* Whether events need call chains. */
bool trace_query_needs_stack(const struct trace_query *query);

/*
 * Gives the probes of the source their programs; not while they record. `limit`: of events that are counted; 0: none.
 * `map_keys`: as trace_script_add. Errors: TRACE_ERROR (no probe has such a field, or there are too many fields),
 * those of the engine.
 */
bool trace_query_place(struct trace_query *query, struct trace_source *source, uint64_t limit, uint64_t map_keys,
                       GError **error);

/* An event that is not one of a program's own. False: it is none, or is not wanted. */
bool trace_query_takes(struct trace_query *query, const struct trace_event *event);
/* Whether as many as the limit have been counted; asks the engine if need be. */
bool trace_query_is_full(struct trace_query *query);

/* Reads what was counted, and how many events that were. */
bool trace_query_finish(struct trace_query *query, uint64_t *events, GError **error);
void trace_query_print(const struct trace_query *query, FILE *out);
void trace_query_fill_json(const struct trace_query *query, json_t *end);

#endif
