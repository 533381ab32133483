// SPDX-License-Identifier: BSD-2-Clause
/* Words of a command line as a request of the control protocol, by what the engine says of its methods. */
#ifndef VPROF_CLI_CTL_REQUEST_H
#define VPROF_CLI_CTL_REQUEST_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#define CTL_ERROR ctl_error_quark()
GQuark ctl_error_quark(void);
enum ctl_error { CTL_ERROR_WORDS };

/* The method of this name in the answer to query-schema, or NULL. Borrowed. */
const json_t *ctl_method(const json_t *schema, const char *name);
/* Whether it needs the control role. */
bool ctl_needs_control(const json_t *method);

/*
 * The "arguments" of a request from words like "timeout-ms=100", "tasks=false", "events=cycles,timer". What the schema
 * does not know is sent as it is, so that the engine says what is wrong with it. Error: a word without "=".
 */
json_t *ctl_arguments(const json_t *method, char *const *words, GError **error);

/* What can go on behind `word`, the last of `line`: methods, or arguments of the method that the line begins with. */
char **ctl_completions(const json_t *schema, const char *line, const char *word);

#endif
