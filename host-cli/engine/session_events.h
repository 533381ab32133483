// SPDX-License-Identifier: BSD-2-Clause
/* An engine's description of a session: its events and its rings. */
#ifndef VPROF_CLI_ENGINE_SESSION_EVENTS_H
#define VPROF_CLI_ENGINE_SESSION_EVENTS_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/client/client.h"
#include "lib/record/writer.h"

#define SESSION_EVENTS_ERROR session_events_error_quark()
GQuark session_events_error_quark(void);
enum session_events_error { SESSION_EVENTS_ERROR_PROTOCOL, SESSION_EVENTS_ERROR_RING };

/*
 * The events in the answer to session-start or query-session: an array of *n, freed by session_events_free. The names
 * belong to `session`. NULL if the answer violates the protocol.
 */
struct recording_event *session_events_parse(const json_t *session, size_t *n, GError **error);
void session_events_free(struct recording_event *events, size_t n);

/*
 * Maps the rings that `method`, which is `rings` or a similar one, returns: one for each vCPU. Steals `arguments`.
 * Appends to `readers` (struct ring_reader, freed by ring_reader_free) and, unless it is NULL, to `eventfds`: int, of
 * the caller, readable when the ring should be drained. Errors: also those of client_execute.
 */
bool session_rings_get(struct client *client, const char *method, json_t *arguments, GPtrArray *readers,
                       GArray *eventfds, GError **error);

/* Sets SESSION_EVENTS_ERROR_PROTOCOL; returns false. */
bool session_protocol_error(GError **error, const char *what);

#endif
