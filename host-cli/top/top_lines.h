// SPDX-License-Identifier: BSD-2-Clause
/* The lines that `vprof top` shows, on a screen or, as a snapshot, on standard output. */
#ifndef VPROF_CLI_TOP_TOP_LINES_H
#define VPROF_CLI_TOP_TOP_LINES_H

#include <glib.h>
#include <stdbool.h>

#include "terminal/terminal.h"
#include "top/top_view.h"

/* Title, a bar for each vCPU (or one for all), exits and what was lost. width: columns there are, at least 40. */
void top_lines_head(GArray *lines, const struct top_view *view, bool paused, bool each_vcpu, unsigned width);

/* The head of the table and its rows, rows_max at most (0: all). */
void top_lines_table(GArray *lines, const struct top_view *view, size_t rows_max);

/*
 * The same for the call tree: paths with at least half a percent, what lies below paths in `folded` left out. paths: an
 * array (char *, by g_free) that gets the path of each row.
 */
void top_lines_calls(GArray *lines, const struct top_view *view, GHashTable *folded, GPtrArray *paths);

/* What the keys do on the screen of a guest. */
void top_lines_help(GArray *lines);

#endif
