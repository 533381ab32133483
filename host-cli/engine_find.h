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

/*
 * Connects to the engine whose guest has this name, whose process id or whose socket's path this is; with NULL, to the
 * only one there is.
 */
struct client *engine_find(const char *name, GError **error);

#endif
