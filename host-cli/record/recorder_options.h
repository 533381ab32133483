// SPDX-License-Identifier: BSD-2-Clause
/* What to record and how often: the options that `vprof run` and `vprof attach` have in common. */
#ifndef VPROF_CLI_RECORD_RECORDER_OPTIONS_H
#define VPROF_CLI_RECORD_RECORDER_OPTIONS_H

#include <glib.h>
#include <jansson.h>

#include "reading/input.h"
#include "ui/option.h"

#define RECORDER_OPTIONS_ERROR recorder_options_error_quark()
GQuark recorder_options_error_quark(void);
enum recorder_options_error { RECORDER_OPTIONS_ERROR_EXCLUDE, RECORDER_OPTIONS_ERROR_ALONE };

struct recorder_options {
	uint64_t frequency_hz, period, call_depth; /* 0: not given */
	char *output;
	char **events;
	char *call_graph;
	gboolean call_chains, call_user, no_call_user, no_tasks, switches, wall, off_cpu, idle_threads, no_report;
};

extern const struct option_row recorder_option_rows[];

/* The arguments of session-start, or NULL if the options are invalid. */
json_t *recorder_options_arguments(const struct recorder_options *options, GError **error);

#endif
