// SPDX-License-Identifier: BSD-2-Clause
/* The names of what can be probed. */
#ifndef VPROF_CLI_TRACE_PROBE_NAMES_H
#define VPROF_CLI_TRACE_PROBE_NAMES_H

#include <stdbool.h>

#include "lib/client/client.h"

/*
 * Adds all probes that match to `names`, and to `bare` those of them without known arguments, from as many
 * answers as needed. `pattern` NULL: none. Returns the providers of the last answer (new reference), or NULL.
 */
json_t *probe_names_list(struct client *client, const char *pattern, json_t *names, json_t *bare, GError **error);

/*
 * With the provider's name: perf and bpftrace write syscalls:sys_enter_openat without it. New string.
 */
char *probe_name_full(const char *text);

#define PROBE_NAME_PROGRAM "user:"
#define PROBE_NAME_NOTE "usdt:"
#define PROBE_NAME_RETURN ":return" /* behind a function of a program, or a system call */

/*
 * Whether it stands for several functions, places or trace points. The patterns of other providers are their engine's.
 */
bool probe_name_is_pattern(const char *text);

/* Of a probe of a program, BINARY:FUNCTION or BINARY:PROVIDER:NAME and so on; NULL: it is none. */
const char *probe_name_program(const char *text);
bool probe_name_is_note(const char *text);
/* Whether it is where a function of a program returns: BINARY:FUNCTION:return. */
bool probe_name_returns(const char *text);
/* The function that it names, without an offset, or PROVIDER:NAME; NULL: it is none of a program. New string. */
char *probe_name_function(const char *text);
/* BINARY; NULL: it is none of a program. New string. */
char *probe_name_path(const char *text);

#endif
