// SPDX-License-Identifier: BSD-2-Clause
/*
 * The unwind tables of what the guest's processes have mapped: made on a thread of their own, of the files that the
 * user names, of what the guest has in memory of the others, of its initramfs and of debuginfod servers, and given to
 * the engine. Files from the guest's memory also give names.
 */
#ifndef VPROF_CLI_RECORD_RECORDER_TABLES_H
#define VPROF_CLI_RECORD_RECORDER_TABLES_H

#include <jansson.h>
#include <vprof/agent.h>

#include "lib/client/client.h"
#include "lib/record/record.h"
#include "lib/symbol/user_symbols.h"

struct recorder_tables;

/*
 * Begins with `programs`, paths of files on this host that the initramfs has (NULL: not known); the others are read
 * when they are wanted. Both are copied.
 */
struct recorder_tables *recorder_tables_new(const struct user_symbol_sources *sources, char *const *programs);
void recorder_tables_free(struct recorder_tables *tables); /* NULL is fine */

/* Wants the table of a file that was mapped. */
void recorder_tables_want(struct recorder_tables *tables, const struct record_mmap *mapping);
/* Gives the engine the tables that are made by now, and asks it for files that only the guest has. */
void recorder_tables_send(struct recorder_tables *tables, struct client *client);
/*
 * A file of which the guest has not all in memory, for the agent in it; `number` is given. False: none at present. When
 * the agent has read it, its table is made of it.
 */
bool recorder_tables_read_next(struct recorder_tables *tables, struct vprof_agent_read *read);
void recorder_tables_read_done(struct recorder_tables *tables, uint32_t number);
/* Whether there are tables to come that were not asked for in vain yet. */
bool recorder_tables_busy(const struct recorder_tables *tables);
/* After the session: waits some seconds at most for names of files that were mapped last. */
void recorder_tables_settle(struct recorder_tables *tables, struct client *client);
/* Names of what is only in the guest's memory; once. */
void recorder_tables_give(struct recorder_tables *tables, struct user_symbols *symbols);

/*
 * For the description: how many of the mapped files have tables, from where; the names of the others; and what the
 * tables lack.
 */
json_t *recorder_tables_json(const struct recorder_tables *tables);

#endif
