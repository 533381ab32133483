// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof ps` and `vprof stack` share: their options, and the look at the guest that they name. */
#ifndef VPROF_CLI_TASKS_TASK_COMMAND_H
#define VPROF_CLI_TASKS_TASK_COMMAND_H

#include "tasks/task_table.h"
#include "ui/option.h"

struct task_values {
	struct attach_engine_options engine;
	gboolean json;
};

extern const struct option_row task_option_rows[];

/*
 * Reads the tasks of the guest that options and arguments name, as [GUEST [PID|COMM]], with --pid as [PID|COMM], and
 * calls `print`. `command`: its name. `wanted`: but for which tasks, and for the kernel. Returns the exit status.
 */
int task_command_run(const char *command, const struct task_values *given, unsigned n, char **arguments,
                     const struct task_wish *wanted,
                     void (*print)(const struct task_values *given, const struct task_table *table,
                                   const json_t *guest));

#endif
