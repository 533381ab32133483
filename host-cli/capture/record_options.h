// SPDX-License-Identifier: BSD-2-Clause
/* What to record and how often: the options that `vprof run` and `vprof attach` have in common. */
#ifndef VPROF_CLI_RECORD_OPTIONS_H
#define VPROF_CLI_RECORD_OPTIONS_H

#include <glib.h>
#include <jansson.h>

#include "reading/input.h"

#define RECORD_OPTIONS_ERROR record_options_error_quark()
GQuark record_options_error_quark(void);
enum record_options_error { RECORD_OPTIONS_ERROR_EXCLUDE };

struct record_options {
	char *frequency, *period, *output;
	char **events;
	char *call_graph, *call_depth;
	gboolean call_chains, call_user, no_call_user, no_tasks, switches, no_report;
};
extern struct record_options record_options;

/* Their rows in a command's table. */
#define RECORD_OPTIONS                                                                           \
	{"event",                                                                                \
	 'e',                                                                                    \
	 0,                                                                                      \
	 G_OPTION_ARG_STRING_ARRAY,                                                              \
	 &record_options.events,                                                                 \
	 "event to sample, as cycles, instructions:u, task-clock; may be given again",           \
	 "EVENT"},                                                                               \
		{"count",                                                                        \
	         'c',                                                                            \
	         0,                                                                              \
	         G_OPTION_ARG_STRING,                                                            \
	         &record_options.period,                                                         \
	         "events (nanoseconds, for clocks) between two samples",                         \
	         "PERIOD"},                                                                      \
		{"call-chains",                                                                  \
	         'g',                                                                            \
	         0,                                                                              \
	         G_OPTION_ARG_NONE,                                                              \
	         &record_options.call_chains,                                                    \
	         "record call chains, of the guest's kernel and user space (--call-graph=auto)", \
	         NULL},                                                                          \
		{"call-graph",                                                                   \
	         0,                                                                              \
	         0,                                                                              \
	         G_OPTION_ARG_STRING,                                                            \
	         &record_options.call_graph,                                                     \
	         "how kernel callers are found: auto, orc, fp (frame pointers) or none",         \
	         "HOW"},                                                                         \
		{"call-depth",                                                                   \
	         0,                                                                              \
	         0,                                                                              \
	         G_OPTION_ARG_STRING,                                                            \
	         &record_options.call_depth,                                                     \
	         "frames of a call chain (default 64, at most 127)",                             \
	         "N"},                                                                           \
		{"call-user",                                                                    \
	         0,                                                                              \
	         0,                                                                              \
	         G_OPTION_ARG_NONE,                                                              \
	         &record_options.call_user,                                                      \
	         "let call chains go on into user space, by frame pointers (the default)",       \
	         NULL},                                                                          \
		{"no-call-user",                                                                 \
	         0,                                                                              \
	         0,                                                                              \
	         G_OPTION_ARG_NONE,                                                              \
	         &record_options.no_call_user,                                                   \
	         "end call chains where the kernel was entered",                                 \
	         NULL},                                                                          \
		{"no-tasks",                                                                     \
	         0,                                                                              \
	         0,                                                                              \
	         G_OPTION_ARG_NONE,                                                              \
	         &record_options.no_tasks,                                                       \
	         "do not look up which task of a Linux guest runs",                              \
	         NULL},                                                                          \
		{"output",                                                                       \
	         'o',                                                                            \
	         0,                                                                              \
	         G_OPTION_ARG_FILENAME,                                                          \
	         &record_options.output,                                                         \
	         "recording to write (default " INPUT_DEFAULT_PATH ")",                          \
	         "FILE"},                                                                        \
	{                                                                                        \
		"no-report", 0, 0, G_OPTION_ARG_NONE, &record_options.no_report,                 \
			"do not print the profile at the end", NULL                              \
	}

/* The arguments of session-start that they make, or NULL when they make no sense. */
json_t *record_options_arguments(GError **error);

#endif
