// SPDX-License-Identifier: BSD-2-Clause
/* What vprof says on stderr, one printable line each with "vprof: " in front, and the exit statuses that go with it. */
#ifndef VPROF_CLI_UI_MESSAGE_H
#define VPROF_CLI_UI_MESSAGE_H

#include <glib.h>

#include "lib/process/message_rate.h"

/* Exit statuses of every command but `run`, which returns the guest's once it has started one. */
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

void say(const char *format, ...) G_GNUC_PRINTF(1, 2);
void warn(const char *format, ...) G_GNUC_PRINTF(1, 2);

/*
 * A warning that a guest or its agent can cause at any rate: a few are printed, the others are counted and left out.
 * warn_rate_end prints how many, at the end.
 */
void warn_at_rate(struct message_rate *rate, const char *format, ...) G_GNUC_PRINTF(2, 3);
void warn_rate_end(struct message_rate *rate);

/* Prints the message and a hint at --help; returns STATUS_USAGE. */
int usage_error(const char *command, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* What to tell the user of the error; part of it. */
const char *failure_text(const GError *error);
/* Prints that; returns STATUS_FAILED, or STATUS_USAGE for an argument that only the engine could refuse. */
int failure(const GError *error);

/* ---- findings of `vprof doctor`, a line each on stdout ---- */

enum finding { FINDING_GOOD, FINDING_NOTE, FINDING_BAD };

/* `text` is printed as text_printable has it; `fix`: a command or what else to do, or NULL. */
void finding_print(enum finding verdict, const char *what, const char *text, const char *fix);

#endif
