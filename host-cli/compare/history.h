// SPDX-License-Identifier: BSD-2-Clause
/* Metrics over many runs of the same work, in the order of their names, and where they went over to another level. */
#ifndef VPROF_CLI_COMPARE_HISTORY_H
#define VPROF_CLI_COMPARE_HISTORY_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "compare/measured.h"
#include "lib/profile/change_point.h"
#include "reading/filter.h"

struct history_options {
	char **metrics;                      /* only these; NULL: all */
	char **throughputs;                  /* more of these is better; NULL */
	const char *event;                   /* by which recordings are measured; NULL: their first */
	const struct filter_options *filter; /* of samples in recordings; checked */
	double alpha;                        /* CHANGE_ALPHA_MIN to 0.5 */
	bool force;                          /* also runs that were made under different conditions */
};

/* One metric of all runs that have it. */
struct history_track {
	const char *name, *unit;
	GArray *values;  /* double: the median of a run's repetitions */
	GPtrArray *runs; /* const struct measured *, borrowed */
	struct change_point *points;
	size_t n_points;
};

struct history {
	const char *folder;                    /* borrowed */
	const struct history_options *options; /* borrowed */
	GPtrArray *runs;                       /* struct measured */
	GPtrArray *tracks;                     /* struct history_track */
};

/* The runs in a folder: *.json and *.data. MEASURED_ERROR, or the file system's. */
struct history *history_load(const char *folder, const struct history_options *options, GError **error);
void history_free(struct history *history);

/* The permissions that the files of all runs have. */
mode_t history_mode(const struct history *history);

/* A level is the stretch between two changes, 0..n_points; level 0 is before the first. Numbers of values. */
size_t history_level_begin(const struct history_track *track, size_t level);
size_t history_level_end(const struct history_track *track, size_t level);
double history_level_median(const struct history_track *track, size_t level);
/* The file of the level's first run. */
const char *history_level_run(const struct history_track *track, size_t level);
/* "better" or "worse" than the level before; NULL: the first, equal, or the direction is unknown. */
const char *history_level_verdict(const struct history *history, const struct history_track *track, size_t level);

/* Which way a metric is better, judged by its name and its unit. */
enum history_direction { HISTORY_UNKNOWN, HISTORY_LESS, HISTORY_MORE };
enum history_direction history_direction(const struct history *history, const struct history_track *track);

void history_print_text(const struct history *history, FILE *to);
/* vprof-history(1) has the schema. */
void history_print_json(const struct history *history, FILE *to);
/* One page without scripts and without anything from elsewhere. */
void history_print_html(const struct history *history, FILE *to);

#endif
