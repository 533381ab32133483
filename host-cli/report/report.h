// SPDX-License-Identifier: BSD-2-Clause
/* A profile of a recording, and its two forms. */
#ifndef VPROF_CLI_REPORT_REPORT_H
#define VPROF_CLI_REPORT_REPORT_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/profile/call_tree.h"
#include "lib/profile/column.h"
#include "lib/profile/lateness.h"
#include "reading/input.h"
#include "reading/recording_head.h"

#define REPORT_DEFAULT_SORT "mode,sym"
#define REPORT_DEFAULT_SORT_SEVERAL "domain,mode,sym"
#define REPORT_JSON_VERSION 2

#define REPORT_ERROR report_error_quark()
GQuark report_error_quark(void);
enum report_error { REPORT_ERROR_NO_WAITS };

struct report_options {
	struct column_list columns;
	size_t limit;         /* rows of each table; 0: all */
	double percent_limit; /* rows with at least this share; 0: all */
	bool call_tree;
};

/* The rows of one event; of all events when the report has the column "event". */
struct report_table {
	const struct recording_event *event; /* NULL: of all */
	uint64_t samples;
	uint64_t period;
	struct profile_row *rows; /* those within the limits, the largest first */
	size_t n_rows;
	size_t n_left_out;
	struct call_node *calls; /* the call tree, all of it; NULL: not asked for */
	size_t n_calls;
	struct lateness *lateness; /* of its overflows; NULL: not known, or several recordings */
};

struct report {
	const struct input *input;
	struct column_list columns;
	double percent_limit;
	struct report_table *tables;
	size_t n_tables;
	struct recording_counts counts;
	struct report **parts; /* of each recording, when there are several; NULL */
	size_t n_parts;
};

/* Reads the whole recording. The report borrows `input`. */
struct report *report_new(struct input *input, const struct report_options *options);
/*
 * One report on several recordings: one table for each event, in which the column "domain" tells guests apart. Without
 * call trees.
 */
struct report *report_new_several(struct input *const *inputs, size_t n, const struct report_options *options);
void report_free(struct report *report);

/* The guest's name, or that of the recording's file. */
const char *report_domain(const struct input *input);

/* The share of a row in its table, 0..1; of periods, or of samples in a recording without periods. */
double report_share(const struct report_table *table, const struct profile_row *row);

/* The call tree of a table, within the report's limit. */
void report_print_calls(const struct report *report, const struct report_table *table, FILE *to);
json_t *report_calls_json(const struct report *report, const struct report_table *table);

/* Where the vCPUs' time went, if the recording has it: lines of the head, and as JSON. */
void report_print_time(const struct report *report, FILE *to);
json_t *report_time_json(const struct report *report);

/*
 * The waits of tasks that are for a lock, a page or a device, by what they wait in and by its caller.
 * REPORT_ERROR_NO_WAITS: the recording has no event of waits.
 */
bool report_print_contention(struct input *input, const struct report_options *options, bool json, FILE *to,
                             GError **error);

void report_print_text(const struct report *report, FILE *to);
/* Its schema: vprof-report(1). */
void report_print_json(const struct report *report, FILE *to);

#endif
