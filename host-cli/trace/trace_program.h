// SPDX-License-Identifier: BSD-2-Clause
/* Functions of the guest's programs and libraries, in copies of their files, for probes of programs. */
#ifndef VPROF_CLI_TRACE_TRACE_PROGRAM_H
#define VPROF_CLI_TRACE_TRACE_PROGRAM_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "lib/client/client.h"
#include "lib/symbol/user_symbols.h"

/* From a folder `symfs`, NULL for none, and the guest's initramfs. */
struct user_symbols *trace_program_copies(struct client *client, const char *symfs);

/*
 * What the engine has to know of `probe`, as the arguments of probe-add: nothing unless it is a probe of a program.
 * How such a probe is written, the engine checks. Errors: TRACE_ERROR_PROBE.
 */
bool trace_program_fill(struct user_symbols *copies, const char *probe, json_t *arguments, GError **error);

/*
 * What probe-args answers of a static probe: the engine does not know its arguments. Their types are the operands, as
 * the first of its places has them. NULL: errors TRACE_ERROR_PROBE.
 */
json_t *trace_program_arguments(struct user_symbols *copies, const char *probe, GError **error);

/* Appends the probes that match `pattern`, one of programs. Errors: TRACE_ERROR_PROBE. */
bool trace_program_list(struct user_symbols *copies, const char *pattern, json_t *names, GError **error);

#endif
