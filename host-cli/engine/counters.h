// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters that a client holds in an engine (counter-* of vprof-control(7)), several at once: a list is an array of
 * {"counter": number, "event": name}, and what counter-read has answered. The engine frees them with the connection.
 */
#ifndef VPROF_CLI_ENGINE_COUNTERS_H
#define VPROF_CLI_ENGINE_COUNTERS_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/client/client.h"

struct counters_kind {
	const char *mode; /* "guest-counting", "task-counting", "guest-sampling" or "task-sampling" */
	bool estimate, descendants;
	bool per_switch;               /* "task-counting": with rings that have what was counted per switch */
	const char *on_full;           /* with rings: as counter-allocate takes it; NULL: the engine's choice */
	uint64_t frequency_hz, period; /* of samples; 0: the engine's choice */
	const char *call_graph;        /* of samples, as counter-allocate takes it; NULL: without call chains */
	uint64_t call_depth;           /* 0: the engine's choice */
	bool no_call_user;             /* chains end at the entry to the kernel */
	bool one_vcpu;                 /* on `vcpu` only, instead of all */
	uint64_t vcpu;
};

/*
 * One for each of `events`, NULL-terminated, not started. An event that the engine refuses is in the list with "error"
 * instead of "counter". New list; NULL: the engine's error for the first event, if it refuses them all.
 */
json_t *counters_allocate(struct client *client, char **events, const struct counters_kind *kind, GError **error);

/* Calls `method` for each counter that there is; with `keep`, the members of the answers are added to the list. */
bool counters_for_all(struct client *client, json_t *counters, const char *method, bool keep, GError **error);

/* For counters with rings: what session-start would have answered for them. New reference. */
json_t *counters_session(const json_t *counters);

/* A line for each counter that was read or refused, below a heading. */
void counters_print(const json_t *counters, bool estimate, FILE *to);

#endif
