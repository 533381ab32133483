// SPDX-License-Identifier: BSD-2-Clause
/* The engine of a guest that a user names: one that runs, or our own, for a guest that has none. */
#ifndef VPROF_CLI_ENGINE_GUEST_ENGINE_H
#define VPROF_CLI_ENGINE_GUEST_ENGINE_H

#include "engine/attach_engine.h"

struct guest_engine {
	struct client *client;
	struct engine_process *own; /* NULL: it ran before */
	json_t *guest;              /* the answer to query-guest */
};

/*
 * `name`: of an engine, as engine_find takes it, or else of a guest, to which it attaches; NULL: the only engine.
 * Options that say which guest lead to that guest alone. *status: as engine_process_start. An engine of our own waits
 * for guest-start. Free with guest_engine_close, also after an error.
 */
bool guest_engine_open(struct guest_engine *engine, const struct attach_engine_options *options, const char *name,
                       int *status, GError **error);
void guest_engine_close(struct guest_engine *engine);
/* The exit status of `command` after it failed; prints why, if the engine, which exited with `status`, has not. */
int guest_engine_failure(const char *command, int status, const GError *error);

#endif
