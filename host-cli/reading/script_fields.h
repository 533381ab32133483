// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof script` prints of a sample: fields by name, in any order, and the call chain. */
#ifndef VPROF_CLI_READING_SCRIPT_FIELDS_H
#define VPROF_CLI_READING_SCRIPT_FIELDS_H

#include <glib.h>
#include <stdbool.h>

#include "reading/input.h"

#define SCRIPT_FIELDS_ERROR script_fields_error_quark()
GQuark script_fields_error_quark(void);
enum script_fields_error { SCRIPT_FIELDS_ERROR_UNKNOWN };

#define SCRIPT_FIELD_NAMES \
	"time, cpu, mode, event, period, ip, sym, module, pid, tid, comm, cgroup, state, waker, chain"

struct script_fields;

/* names: NULL-terminated; NULL: the usual ones. chains: and the call chain. */
struct script_fields *script_fields_new(char *const *names, bool chains, GError **error);
void script_fields_free(struct script_fields *fields);
bool script_fields_have_chain(const struct script_fields *fields);

/*
 * One line, and one for each frame of the chain; JSON: one object in a line. Both on standard output; lines are kept
 * until script_fields_flush where that is faster.
 */
void script_fields_print(struct script_fields *fields, const struct input *input, const struct record_sample *sample,
                         unsigned event);
void script_fields_print_json(const struct script_fields *fields, const struct input *input,
                              const struct record_sample *sample, unsigned event);

void script_fields_flush(struct script_fields *fields);

#endif
