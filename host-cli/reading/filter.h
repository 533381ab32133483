// SPDX-License-Identifier: BSD-2-Clause
/* Which samples of a recording are read: options that every command has that reads one. */
#ifndef VPROF_CLI_READING_FILTER_H
#define VPROF_CLI_READING_FILTER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/profile/names.h"
#include "lib/record/reader.h"
#include "ui/option.h"

struct filter_options {
	char **comms, **pids, **cgroups, **vcpus, **modes, **events;
	char *time;
};

/* filter_event_rows is for commands that do not take one event anyway. */
extern const struct option_row filter_option_rows[], filter_event_rows[];

/* False and UNITS_ERROR: a value is wrong. */
bool filter_options_check(const struct filter_options *options, GError **error);

struct filter;

/*
 * NULL: everything passes, or an error: G_OPTION_ERROR_BAD_VALUE, the recording has no such event. options: checked,
 * borrowed as recording and names are.
 */
struct filter *filter_new(const struct filter_options *options, struct recording *recording, struct names *names,
                          GError **error);
void filter_free(struct filter *filter);
bool filter_chooses_event(const struct filter *filter, unsigned event);
bool filter_chooses_time(const struct filter *filter);

bool filter_passes(struct filter *filter, const struct record_sample *sample, unsigned event);
/* A context switch, which has neither a mode nor an event. `of`: its task, vCPU and time. */
bool filter_passes_switch(struct filter *filter, const struct record_sample *of);

/* "comm bash; mode kernel": what passes, in words. New string; NULL: everything. */
char *filter_options_text(const struct filter_options *options);
char *filter_text(const struct filter *filter);

#endif
