// SPDX-License-Identifier: BSD-2-Clause
/* Lines that somebody types, edited with history and completion where libedit was there when this was built. */
#ifndef VPROF_CLI_CTL_INPUT_H
#define VPROF_CLI_CTL_INPUT_H

#include <glib.h>

/* Words that go on from `line` up to its last word, `word`: a NULL-terminated array of new strings, with a space or
 * "=". */
typedef char **(*ctl_complete)(const char *line, const char *word, void *data);

void ctl_input_init(ctl_complete complete, void *data);
/* The next line without its end (new string); NULL at the end of input. */
char *ctl_input_line(const char *prompt);

#endif
