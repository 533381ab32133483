// SPDX-License-Identifier: BSD-2-Clause
/* Measurements as JSON: vprof-measurements(5). */
#ifndef VPROF_CLI_MEASURED_JSON_H
#define VPROF_CLI_MEASURED_JSON_H

#include "compare/measured.h"

/* Whether what was measured under them is counted, see struct measurements. */
bool conditions_count(const json_t *conditions);

json_t *measured_to_json(const struct measured *measured);
/* `document` is untrusted. NULL with MEASURED_ERROR_FORMAT. */
struct measured *measured_from_json(const char *path, const json_t *document, GError **error);

#endif
