// SPDX-License-Identifier: BSD-2-Clause
/* What vprof says on stderr. One line each, "vprof: " in front. */
#ifndef VPROF_CLI_MESSAGE_H
#define VPROF_CLI_MESSAGE_H

#include <glib.h>

void say(const char *format, ...) G_GNUC_PRINTF(1, 2);
void warn(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Says it and where help is; returns STATUS_USAGE. */
int usage_error(const char *command, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Says what the error says; returns STATUS_FAILED. */
int failure(const GError *error);

#endif
