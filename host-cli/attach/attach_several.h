// SPDX-License-Identifier: BSD-2-Clause
/* Several domains at once: a process for each, and a recording. */
#ifndef VPROF_CLI_ATTACH_SEVERAL_H
#define VPROF_CLI_ATTACH_SEVERAL_H

#include <glib.h>
#include <stdbool.h>

#include "engine/attach_engine.h"

/* Records one domain to its end, into `output`; returns the exit status. In a process of its own. */
typedef int (*attach_one)(const char *domain, const char *output, void *data);

/*
 * Records all of `domains` (NULL-terminated) at once, into NAME.data in `folder` (NULL: the current one), and prints
 * their profiles one after the other if `report`. Returns the exit status: that of the worst. No thread may run yet.
 */
int attach_several(const char *const *domains, const char *folder, bool report, attach_one one, void *data);

/* The names of the domains that run. NULL: it has been said why. */
char **attach_all_domains(const struct attach_engine_options *options);

#endif
