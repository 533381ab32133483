// SPDX-License-Identifier: BSD-2-Clause
/*
 * The progress of a command, on stderr if it is a terminal: shown from one second after the start on, or as
 * VPROF_PROGRESS says. One task at a time.
 */
#ifndef VPROF_CLI_UI_PROGRESS_H
#define VPROF_CLI_UI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Announces output during a task: if it also goes to a terminal, no progress is shown. */
void progress_beside_output(void);

/* what: "reading", "writing", ...; of: a path; total: in units of progress_step; 0: unknown. */
void progress_begin(const char *what, const char *of, uint64_t total);
/* `n` more are done. */
void progress_step(uint64_t n);
/* Clears the line, so that other messages can be printed there. */
void progress_end(void);

/* For states that are not tasks: whether a line would be shown now; and shows that line. */
bool progress_is_due(void);
void progress_show(const char *line);
/* Clears the line before other output. */
void progress_clear(void);
/* Clears the line and keeps it away for as long as before its first display. */
void progress_pause(void);

#endif
