// SPDX-License-Identifier: BSD-2-Clause
/* What to record and how often: the options that `vprof run` and `vprof attach` have in common. */
#ifndef VPROF_CLI_RECORD_RECORDER_OPTIONS_H
#define VPROF_CLI_RECORD_RECORDER_OPTIONS_H

#include <glib.h>
#include <jansson.h>

#include "reading/input.h"
#include "ui/option.h"

#define CAPTURE_OPTIONS_ERROR capture_options_error_quark()
GQuark capture_options_error_quark(void);
enum capture_options_error { CAPTURE_OPTIONS_ERROR_EXCLUDE, CAPTURE_OPTIONS_ERROR_ALONE };

struct capture_options {
	uint64_t frequency_hz, period, call_depth; /* 0: not given */
	char *output;
	char **events;
	char *call_graph;
	gboolean call_chains, call_user, no_call_user, no_tasks, switches, wall, off_cpu, idle_threads, no_report;
};

extern const struct option_row capture_option_rows[];

/* The arguments of session-start, or NULL if the options are invalid. */
json_t *capture_options_arguments(const struct capture_options *options, GError **error);

#endif
