// SPDX-License-Identifier: BSD-2-Clause
/* Turns words of a command line into a request of the control protocol, by the engine's own schema. */
#ifndef VPROF_CLI_ENGINE_CTL_REQUEST_H
#define VPROF_CLI_ENGINE_CTL_REQUEST_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#define CTL_ERROR ctl_error_quark()
GQuark ctl_error_quark(void);
enum ctl_error { CTL_ERROR_WORDS };

/* The method of this name in the answer to query-schema, or NULL. Borrowed. */
const json_t *ctl_method(const json_t *schema, const char *name);
/* Gives each method of the schema its own arguments, where they are described with another's. */
void ctl_schema_complete(json_t *schema);
/* Whether it needs the control role. */
bool ctl_needs_control(const json_t *method);

/*
 * The "arguments" of a request from words like "timeout-ms=100", "tasks=false", "events=cycles,timer". Names that the
 * schema does not contain are sent unchanged, and the engine reports the error. Error: a word without "=".
 */
json_t *ctl_arguments(const json_t *method, char *const *words, GError **error);

/* Completions of `word`, the last word of `line`: methods, or arguments of the method at the line's beginning. */
char **ctl_completions(const json_t *schema, const char *line, const char *word);

#endif
