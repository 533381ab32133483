// SPDX-License-Identifier: BSD-2-Clause
/* What a process costs the host. */
#ifndef VPROF_CLI_DAEMON_DAEMON_COST_H
#define VPROF_CLI_DAEMON_DAEMON_COST_H

#include <jansson.h>
#include <sys/types.h>

/* {"pid", "cpu-ns": of all its threads, "resident-bytes"}; numbers are 0 of a process that has ended. New reference. */
json_t *daemon_cost(pid_t pid);

#endif
