// SPDX-License-Identifier: BSD-2-Clause
/* What vprof says on stderr, one line each with "vprof: " in front, and the exit statuses that go with it. */
#ifndef VPROF_CLI_UI_MESSAGE_H
#define VPROF_CLI_UI_MESSAGE_H

#include <glib.h>

/* Exit statuses of every command but `run`, which returns the guest's once it has started one. */
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

void say(const char *format, ...) G_GNUC_PRINTF(1, 2);
void warn(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Prints the message and a hint at --help; returns STATUS_USAGE. */
int usage_error(const char *command, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Prints the error's message; returns STATUS_FAILED. */
int failure(const GError *error);

/* ---- findings of `vprof doctor`, a line each on stdout ---- */

enum finding { FINDING_GOOD, FINDING_NOTE, FINDING_BAD };

/* `text` is printed as text_printable has it; `fix`: a command or what else to do, or NULL. */
void finding_print(enum finding verdict, const char *what, const char *text, const char *fix);

#endif
