// SPDX-License-Identifier: BSD-2-Clause
/*
 * How far a command has got, on stderr if that is a terminal: from a second after it was first asked to tell on, or as
 * VPROF_PROGRESS says. One task at a time.
 */
#ifndef VPROF_CLI_PROGRESS_H
#define VPROF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Says that output comes while a task is under way: if it goes to a terminal, too, nothing is shown beside it. */
void progress_beside_output(void);

/* what: "reading", "writing"...; of: a path. total: of what progress_step counts; 0: nobody knows. */
void progress_begin(const char *what, const char *of, uint64_t total);
/* `n` more are done. */
void progress_step(uint64_t n);
/* Leaves an empty line behind, where others may write. */
void progress_end(void);

/* For what is no task: whether a line would be shown now; shows that line. */
bool progress_is_due(void);
void progress_show(const char *line);
/* Takes the line away, where others write. */
void progress_clear(void);
/* Likewise, and has it stay away until there has been as much quiet as before the first. */
void progress_pause(void);

#endif
