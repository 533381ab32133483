// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rows of a report's table that a reader unfolds: below a function stand its callers with what it took itself, as
 * far as they led to it, and below each of them its own callers.
 */
#ifndef VPROF_CLI_BROWSE_BROWSE_LIST_H
#define VPROF_CLI_BROWSE_BROWSE_LIST_H

#include <glib.h>
#include <stdbool.h>

#include "report/report.h"
#include "terminal/terminal.h"

struct browse_list;

/* report: borrowed, with a call tree (report_options.call_tree). table: its number. */
struct browse_list *browse_list_new(const struct report *report, size_t table);
void browse_list_free(struct browse_list *list);

/* Only rows that have `text` in one of their columns, in any case; NULL or "": all. */
void browse_list_filter(struct browse_list *list, const char *text);

/* How many rows there are, with those that are unfolded. */
unsigned browse_list_rows(const struct browse_list *list);
/* The head of the table, then a line for each row. Array of struct terminal_line. */
GArray *browse_list_lines(const struct browse_list *list);

/* Unfolds a row, or folds it. False: nothing is below it. */
bool browse_list_fold(struct browse_list *list, unsigned row);
void browse_list_unfold_all(struct browse_list *list, unsigned row);
void browse_list_fold_all(struct browse_list *list);
/* The row that `row` is unfolded below; itself at the top. */
unsigned browse_list_parent(const struct browse_list *list, unsigned row);
bool browse_list_is_open(const struct browse_list *list, unsigned row);

/*
 * The next of the lines behind the first with `text` in it, in any case, from number `from` on and around; step 1 or
 * -1. -1: none.
 */
int browse_lines_search(const GArray *lines, const char *text, int from, int step);

/* The function of a row and its module; NULL where the columns do not say them. */
const char *browse_list_symbol(const struct browse_list *list, unsigned row, const char **module);

#endif
