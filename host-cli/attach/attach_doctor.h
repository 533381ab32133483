// SPDX-License-Identifier: BSD-2-Clause
/* `vprof doctor` of a guest that runs already. */
#ifndef VPROF_CLI_ATTACH_DOCTOR_H
#define VPROF_CLI_ATTACH_DOCTOR_H

#include <stdbool.h>

#include "engine/attach_engine.h"

/* The guest is `domain` or that of `options`, after attach_engine_check. The exit status. */
int attach_doctor(const struct attach_engine_options *options, const char *domain, bool json);

#endif
