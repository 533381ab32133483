// SPDX-License-Identifier: BSD-2-Clause
/*
 * The samples of `vprof top` come from a session of an engine. If the control role is free, top starts a session and
 * reads its rings. If another client records already, top reads along (samples-read). If another client has the role
 * and does not record, there are clocks and no samples until a session begins.
 */
#ifndef VPROF_CLI_TOP_TOP_SOURCE_H
#define VPROF_CLI_TOP_TOP_SOURCE_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "engine/attach_engine.h"
#include "lib/client/client.h"
#include "lib/record/writer.h"
#include "lib/symbol/symtab.h"

#define TOP_SOURCE_ERROR top_source_error_quark()
GQuark top_source_error_quark(void);
enum top_source_error {
	TOP_SOURCE_ERROR_GUEST_ENDED, /* the message says how */
	TOP_SOURCE_ERROR_ENGINE_GONE,
	TOP_SOURCE_ERROR_RING,
};

struct top_source;

/*
 * name: as engine_find takes it, else a libvirt domain, which is attached; with --pid, NULL.
 * session: arguments of session-start for a session of its own (stolen). *status: as engine_process_start.
 */
struct top_source *top_source_open(const struct attach_engine_options *options, const char *name, json_t *session,
                                   int *status, GError **error);
/* Ends what it has started. NULL is fine. */
void top_source_close(struct top_source *source);

const json_t *top_source_guest(const struct top_source *source); /* as query-guest */
/* NULL: no names of kernel functions; then *why is a sentence that lives as long as the source. */
const struct symtab *top_source_symtab(const struct top_source *source, const char **why);

/* The session, as session-start answers; NULL without. It and its event change in top_source_drain only. */
const json_t *top_source_session(const struct top_source *source);
/* Its first event, the one that is shown; NULL without a session. */
const struct recording_event *top_source_event(const struct top_source *source);
/* How the samples come, or why there are none: a sentence. */
const char *top_source_how(const struct top_source *source);

/*
 * Appends copies of the whole records since the last call, in no order across vCPUs. *fresh: a new session has begun,
 * and earlier records do not belong to it.
 */
bool top_source_drain(struct top_source *source, GByteArray *records, bool *fresh, GError **error);

/* The answers to query-vcpu-time, one for each vCPU; NULL with an error. */
json_t *top_source_clocks(struct top_source *source, GError **error);
/* "total" of query-stats; NULL without an error where there was no session yet. New references. */
json_t *top_source_statistics(struct top_source *source, GError **error);

/* Restarts its own session with call chains. False without an error: another client has the session. */
bool top_source_add_chains(struct top_source *source, GError **error);

/* To ask the engine more; borrowed. */
struct client *top_source_client(const struct top_source *source);

/* A descriptor to poll while waiting for the next interval. */
int top_source_fd(const struct top_source *source);

#endif
