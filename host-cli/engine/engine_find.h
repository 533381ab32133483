// SPDX-License-Identifier: BSD-2-Clause
/* Finds running engines, as `vprof list` shows them. */
#ifndef VPROF_CLI_ENGINE_ENGINE_FIND_H
#define VPROF_CLI_ENGINE_ENGINE_FIND_H

#include "lib/client/client.h"

#define ENGINE_FIND_ERROR engine_find_error_quark()
GQuark engine_find_error_quark(void);
enum engine_find_error {
	ENGINE_FIND_ERROR_NONE,
	ENGINE_FIND_ERROR_AMBIGUOUS,
};

/* The name of the engine with that socket, as of its guest. New string. */
char *engine_name(const char *socket_path);

/*
 * Connects to an engine by the name of its guest, its process id or the path of its socket; with NULL, to the only
 * engine.
 */
struct client *engine_find(const char *name, GError **error);

#endif
