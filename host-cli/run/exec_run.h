// SPDX-License-Identifier: BSD-2-Clause
/* The agent's report of a finished run of the command. */
#ifndef VPROF_CLI_RUN_EXEC_RUN_H
#define VPROF_CLI_RUN_EXEC_RUN_H

#include <jansson.h>
#include <stdint.h>
#include <vprof/agent.h>

#include "lib/agent/metrics.h"
#include "run/exec_plan.h"

/*
 * An element of "exec"."runs" in a recording: the run of this name, since started_ns (guest's clock), with the metrics
 * that it printed. Metrics with one of vprof's own names are left out with a warning. New reference.
 */
json_t *exec_run_json(const char *name, const struct vprof_agent_exited *exited, uint64_t started_ns,
                      const struct metrics *metrics);

/* The exit status of vprof after this run. If it is not 0, *message is the reason; for g_free. */
int exec_run_status(const struct exec_plan *plan, const struct vprof_agent_exited *exited, char **message);

#endif
