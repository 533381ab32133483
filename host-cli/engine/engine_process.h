// SPDX-License-Identifier: BSD-2-Clause
/* An engine: a child process with a control connection, and calls of its methods. */
#ifndef VPROF_CLI_ENGINE_ENGINE_PROCESS_H
#define VPROF_CLI_ENGINE_ENGINE_PROCESS_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/client/client.h"

#define ENGINE_PROCESS_ERROR engine_process_error_quark()
GQuark engine_process_error_quark(void);
enum engine_process_error {
	ENGINE_PROCESS_ERROR_SPAWN,
	ENGINE_PROCESS_ERROR_REFUSED, /* it ended before it answered, and has printed the reason itself */
};

struct engine_process;

/*
 * How to start the engine: arguments (NULL-terminated, without the program's name), which follow those for the
 * connection, and descriptors, which become its ENGINE_FIRST_FD, ENGINE_FIRST_FD + 1, ...; the caller keeps them.
 */
#define ENGINE_FIRST_FD 4
#define ENGINE_FDS_MAX 4u

struct engine_process_config {
	const char *program; /* "vprof-vmm", "vprof-attach" */
	const char *const *arguments;
	int fds[ENGINE_FDS_MAX];
	size_t n_fds;
};

/* Add an option with its value to arguments, which own their texts; none for NULL and 0. */
void engine_argument_add(GPtrArray *arguments, const char *option, const char *value);
void engine_number_add(GPtrArray *arguments, const char *option, uint64_t number);

/*
 * Starts the engine, with our standard streams, and negotiates. *status: how it exited, with
 * ENGINE_PROCESS_ERROR_REFUSED.
 */
struct engine_process *engine_process_start(const struct engine_process_config *config, int *status, GError **error);
/* Prints why it did not start, unless it has printed that itself; returns the exit status. */
int engine_process_failure(int status, const GError *error);
/* Has the engine end its guest. It exits at once, or lingers for other clients (vprof-vmm(8)). */
void engine_process_quit(struct engine_process *engine);
/*
 * The same if it was not asked to yet, and closes the connection. Waits for an engine that does not linger to exit,
 * then kills it. NULL is fine.
 */
void engine_process_free(struct engine_process *engine);

/* The same with a short wait. */
void engine_process_abandon(struct engine_process *engine);

struct client *engine_process_client(const struct engine_process *engine);
int engine_process_pidfd(const struct engine_process *engine); /* readable when it has exited */

/*
 * How an engine that has closed its connection exited, in words: "was killed by signal 9 (Killed)"; NULL if it still
 * runs after a second. New string.
 */
char *engine_process_death(struct engine_process *engine);

/* ---- calls of an engine's methods, also of one that ran before ---- */

#define ENGINE_ANSWER_TIMEOUT_MS 10000u

/*
 * Calls `method`; steals `arguments`. Returns the answer, printable, or NULL if the engine refuses, is gone, or takes
 * longer than ENGINE_ANSWER_TIMEOUT_MS.
 */
json_t *engine_ask(struct client *client, const char *method, json_t *arguments, GError **error);
/* The same, for a method without results. */
bool engine_tell(struct client *client, const char *method, json_t *arguments, GError **error);

#endif
