// SPDX-License-Identifier: BSD-2-Clause
/* `vprof stat` of a guest that runs already. */
#ifndef VPROF_CLI_STAT_DOMAIN_H
#define VPROF_CLI_STAT_DOMAIN_H

#include <stdbool.h>

/* The guest is `domain` or that of attach_engine_options, which attach_engine_check has seen. The exit status. */
int stat_domain(const char *domain, const char *duration, bool json);

#endif
