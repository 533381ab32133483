// SPDX-License-Identifier: BSD-2-Clause
/* What a command that records says about it, before and after. */
#ifndef VPROF_CLI_CAPTURE_CAPTURE_RESULT_H
#define VPROF_CLI_CAPTURE_CAPTURE_RESULT_H

#include <stdio.h>

#include "capture/capture.h"

/* Why it samples what it samples. */
void capture_say_session(const struct capture *capture, bool verbose);

/* How much there is in the file. */
void capture_say_written(const struct capture *capture, const char *path);

/* One line each. */
void capture_say_warnings(const GPtrArray *warnings);

/* The top of the profile. */
bool recording_print_top(const char *path, FILE *stream, GError **error);

/* The command line as the recording keeps it. */
char **capture_command_line(void);

#endif
