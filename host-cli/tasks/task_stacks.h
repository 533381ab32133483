// SPDX-License-Identifier: BSD-2-Clause
/* Tasks by what they do: those with equal call chains together. */
#ifndef VPROF_CLI_TASKS_TASK_STACKS_H
#define VPROF_CLI_TASKS_TASK_STACKS_H

#include <stdio.h>

#include "tasks/task_table.h"

/* Tasks in the same state, with the same functions in their call chains. */
struct task_stack {
	GPtrArray *rows; /* of struct task_row, borrowed; one or more */
};

/*
 * The groups: those that run first, then idle processors, those that wait without being interruptible (D), that wait
 * for a processor, and the others; of these, the largest first. Array of struct task_stack *; borrows from the table.
 */
GPtrArray *task_stacks_new(const struct task_table *table);

void task_stacks_print(const GPtrArray *stacks, FILE *to);
json_t *task_stacks_json(const GPtrArray *stacks); /* new reference */

#endif
