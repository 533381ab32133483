// SPDX-License-Identifier: BSD-2-Clause
/* `vprof stat` of a guest that runs already. */
#ifndef VPROF_CLI_STAT_DOMAIN_H
#define VPROF_CLI_STAT_DOMAIN_H

#include <stdbool.h>

#include "engine/attach_engine.h"

/* The guest is `domain` or that of `options`, after attach_engine_check. The exit status. */
int stat_domain(const struct attach_engine_options *options, const char *domain, const char *duration, bool json);

#endif
