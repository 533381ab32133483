// SPDX-License-Identifier: BSD-2-Clause
/* Guests of other processes: list, examine, count, and record several side by side. */
#ifndef VPROF_CLI_ATTACH_ATTACH_H
#define VPROF_CLI_ATTACH_ATTACH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/attach_engine.h"

/* `vprof attach --list`. Returns the exit status. */
int attach_list(const struct attach_engine_options *options, bool json);

/* `vprof doctor` of the guest `domain`, or of that in `options`; after attach_engine_check. Returns the exit status. */
int attach_doctor(const struct attach_engine_options *options, const char *domain, bool json);

/* `vprof stat` of such a guest. Returns the exit status. */
int attach_stat(const struct attach_engine_options *options, const char *domain, const char *duration, bool json);
/*
 * What `vprof stat` prints, also of a guest that it has booted. `answers`: of vcpu_clocks_query; `events`: as of
 * counters_for_all, or NULL; `end`: as in guest-ended, or NULL.
 */
void stat_print(const json_t *answers, json_t *events, json_t *end, bool json, FILE *to);

/* Records one domain to its end, into `output`; returns the exit status. In a process of its own. */
typedef int (*attach_one)(const char *domain, const char *output, void *data);

/*
 * Records all of `domains` (NULL-terminated) at once, into NAME.data in `folder` (NULL: the current one), and prints
 * their profiles one after the other if `report`. Returns the worst exit status. No thread may run yet.
 */
int attach_several(const char *const *domains, const char *folder, bool report, attach_one one, void *data);

/* The names of the running domains. NULL: the reason has been printed. */
char **attach_all_domains(const struct attach_engine_options *options);

#endif
