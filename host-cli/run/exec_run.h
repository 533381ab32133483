// SPDX-License-Identifier: BSD-2-Clause
/* What the agent tells of a run of the command that has ended. */
#ifndef VPROF_CLI_EXEC_RUN_H
#define VPROF_CLI_EXEC_RUN_H

#include <jansson.h>
#include <stdint.h>
#include <vprof/agent.h>

#include "lib/agent/metrics.h"
#include "run/exec_plan.h"

/*
 * An element of "exec"."runs" in a recording: the run of this name, since started_ns (the guest's clock), with the
 * numbers that it has printed but those that would pass for ours. Warns of the latter. New reference.
 */
json_t *exec_run_json(const char *name, const struct vprof_agent_exited *exited, uint64_t started_ns,
                      const struct metrics *metrics);

/* What vprof exits with after it, and *message: what there is to say, if that is not 0; for g_free. */
int exec_run_status(const struct exec_plan *plan, const struct vprof_agent_exited *exited, char **message);

#endif
