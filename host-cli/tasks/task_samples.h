// SPDX-License-Identifier: BSD-2-Clause
/* What runs on a guest's vCPUs where their registers are not known without sampling: the last samples of a short
 * session. */
#ifndef VPROF_CLI_TASKS_TASK_SAMPLES_H
#define VPROF_CLI_TASKS_TASK_SAMPLES_H

#include "tasks/task_table.h"

/*
 * Gives the tasks of the table that run, and have no call chain, that of their last sample; those that were not sampled
 * stay without one. With an engine of our own, which has no session.
 */
void task_samples_add(struct task_table *table, const struct guest_engine *engine);

#endif
