// SPDX-License-Identifier: BSD-2-Clause
/* User space in a look at tasks: the unwind tables of what their chains lead through, and the names of functions. */
#ifndef VPROF_CLI_TASKS_TASK_USER_H
#define VPROF_CLI_TASKS_TASK_USER_H

#include "engine/guest_engine.h"
#include "tasks/task_table.h"

struct task_user;

/*
 * Gives an engine of our own the unwind tables of the files that the chains of `table` lead through, for the next look;
 * another one has those of its own client. Takes some seconds at most.
 */
struct task_user *task_user_new(const struct task_table *table, const struct guest_engine *engine,
                                const struct user_symbol_sources *sources);
void task_user_free(struct task_user *user); /* NULL is fine */

/* The function at an address of the mapping; NULL: it has no name that is known. */
const char *task_user_symbol(struct task_user *user, const struct task_mapping *mapping, uint64_t address);

#endif
