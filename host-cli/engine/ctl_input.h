// SPDX-License-Identifier: BSD-2-Clause
/* Interactive input lines, with history and completion if vprof was built with libedit. */
#ifndef VPROF_CLI_ENGINE_CTL_INPUT_H
#define VPROF_CLI_ENGINE_CTL_INPUT_H

#include <glib.h>

/*
 * Completions of `word`, the last word of `line`: a NULL-terminated array of new strings that end with a space or "=".
 */
typedef char **(*ctl_complete)(const char *line, const char *word, void *data);

void ctl_input_init(ctl_complete complete, void *data);
/* The next line without its end (new string); NULL at the end of input. */
char *ctl_input_line(const char *prompt);

#endif
