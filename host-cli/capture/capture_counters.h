// SPDX-License-Identifier: BSD-2-Clause
/* The samples of counters that take some, in a recording. */
#ifndef VPROF_CLI_CAPTURE_CAPTURE_COUNTERS_H
#define VPROF_CLI_CAPTURE_CAPTURE_COUNTERS_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/client/client.h"

/*
 * Starts counters in a sampling mode (counters.h), and writes what they sample to a file, for some time or until it is
 * interrupted. What was recorded until a failure stays in the file.
 */
bool capture_counters(struct client *client, json_t *counters, uint64_t seconds, const char *path, GError **error);

#endif
