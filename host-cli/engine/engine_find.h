// SPDX-License-Identifier: BSD-2-Clause
/* Engines that run already, as `vprof list` shows them. */
#ifndef VPROF_CLI_ENGINE_FIND_H
#define VPROF_CLI_ENGINE_FIND_H

#include "lib/client/client.h"

#define ENGINE_FIND_ERROR engine_find_error_quark()
GQuark engine_find_error_quark(void);
enum engine_find_error {
	ENGINE_FIND_ERROR_NONE,
	ENGINE_FIND_ERROR_AMBIGUOUS,
};

#define ENGINE_ANSWER_TIMEOUT_MS 10000u

/* Has an engine do `method`; steals `arguments`. Its answer, or NULL: it refused, is gone, or took
 * ENGINE_ANSWER_TIMEOUT_MS. */
json_t *engine_ask(struct client *client, const char *method, json_t *arguments, GError **error);
/* The same, of a method that has nothing to say. */
bool engine_tell(struct client *client, const char *method, json_t *arguments, GError **error);

/*
 * Connects to the engine whose guest has this name, whose process id or whose socket's path this is; with NULL, to the
 * only one there is.
 */
struct client *engine_find(const char *name, GError **error);

#endif
