// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes by source line, function:FILE:LINE: places in functions of the guest's kernel, by the debug information of its
 * image, or of a copy where distributions install it. Engines know places only.
 */
#ifndef VPROF_CLI_TRACE_PROBE_LINES_H
#define VPROF_CLI_TRACE_PROBE_LINES_H

#include <stdbool.h>

#include "lib/client/client.h"

/*
 * `text` has a probe_name_line. Adds all places of the line, "function:NAME+OFFSET", where statements of it begin, to
 * `names`; of a line without code those of the next that has some, and says so. Where LINE is a pattern, adds those
 * lines of FILE with code that match. Errors: TRACE_ERROR_PROBE.
 */
bool probe_lines_list(struct client *client, const char *text, json_t *names, GError **error);

#endif
