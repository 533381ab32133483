// SPDX-License-Identifier: BSD-2-Clause
/* What stands in a row of a profile, for people and for programs. */
#ifndef VPROF_CLI_UI_COLUMN_CELL_H
#define VPROF_CLI_UI_COLUMN_CELL_H

#include <jansson.h>

#include "lib/profile/column.h"

/* New string, fit for a terminal. */
char *column_cell_text(const struct column *column, const struct profile_row *row);
/* How wide the column is for these rows and its header, in characters; `max` at most. */
int column_cells_width(const struct column *column, const struct profile_row *rows, size_t n_rows, int max);
/* Numbers to the right, texts to the left. The last column is not padded: no line ends in blanks. */
void column_cell_append(GString *line, const struct column *column, const char *text, int width, bool last);

/* The cells by their keys, "samples", "period" and "share". New reference. */
json_t *column_row_json(const struct column_list *list, const struct profile_row *row, double share);

#endif
