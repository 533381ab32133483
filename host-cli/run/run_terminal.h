// SPDX-License-Identifier: BSD-2-Clause
/* The terminal while a guest runs: keys go to the guest's console, and a status line is shown on stderr. */
#ifndef VPROF_CLI_RUN_RUN_TERMINAL_H
#define VPROF_CLI_RUN_RUN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

struct terminal;

/* `console_here`: the guest's console is on our standard input and output. */
struct terminal *terminal_new(bool console_here);
/* Puts the terminal back as it was. NULL is fine. */
void terminal_free(struct terminal *terminal);

/*
 * Raw mode: keys reach the guest one by one and are echoed by the guest only; Ctrl-C and Ctrl-Z still go to vprof.
 * Called again after SIGCONT, since the shell has changed the modes meanwhile.
 */
void terminal_raw(struct terminal *terminal);

/*
 * Where stderr is a terminal and the console is elsewhere, as progress.h says when: "repeat-3 of 10, 12.3 s, 12345
 * samples, 998/s". what, samples: may be NULL.
 */
void terminal_progress(struct terminal *terminal, const char *what, const uint64_t *samples);

#endif
