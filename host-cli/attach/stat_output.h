// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof stat` prints. */
#ifndef VPROF_CLI_STAT_OUTPUT_H
#define VPROF_CLI_STAT_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* `answers`: of vcpu_clocks_query; `events`: as of counters_for_all, or NULL; `end`: as in guest-ended, or NULL. */
void stat_print(const json_t *answers, json_t *events, json_t *end, bool json, FILE *to);

#endif
