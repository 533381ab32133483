// SPDX-License-Identifier: BSD-2-Clause
/* Where measurements come from and go to: recordings (measured_recording.c) and JSON (measured_json.c). */
#ifndef VPROF_CLI_COMPARE_MEASURED_PRIV_H
#define VPROF_CLI_COMPARE_MEASURED_PRIV_H

#include "compare/measured.h"
#include "lib/profile/shift.h"

#define MEASURED_EVENT_STEPS "steps" /* events that count every instruction have names with this prefix */

/* All values 0; steals `conditions`. */
struct measured *measured_new(const char *path, const char *unit, size_t n_repetitions, json_t *conditions);

/* phase, event, filter: as measured_load. */
struct measured *measured_from_recording(const char *path, const char *phase, const char *event,
                                         const struct filter_options *filter, GError **error);
/* Whether it is a metric of the time in some modes, which every repetition has. */
bool measured_is_mode(const char *name);
/* The metric of the time for which tasks waited in a state (vprof/recording.h), or of all of it: VPROF_TASK_RUNNING. */
const char *measured_waiting_name(unsigned state);
bool measured_is_waiting(const char *name);

/* vprof-measurements(5). */
json_t *measured_to_json(const struct measured *measured);
/* `document` is untrusted. NULL with MEASURED_ERROR_FORMAT. */
struct measured *measured_from_json(const char *path, const json_t *document, GError **error);

#endif
