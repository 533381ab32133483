// SPDX-License-Identifier: BSD-2-Clause
/* What the runs of `run --exec` say about themselves: their CPU time and memory, and the numbers that they print. */
#ifndef VPROF_CLI_MEASURED_RUN_H
#define VPROF_CLI_MEASURED_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/profile/comparison.h"

/* Whether vprof itself measures something of that name. */
bool measured_is_own(const char *name);

/* Adds what `run`, one of exec.runs of VPROF_FEATURE_DESCRIPTION, says as values[index]. NULL: nothing. Untrusted. */
void measured_add_run(struct measurements *measurements, const json_t *run, size_t index);

#endif
