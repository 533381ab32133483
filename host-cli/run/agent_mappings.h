// SPDX-License-Identifier: BSD-2-Clause
/*
 * The mapped files of a guest's processes, as the agent in the guest reports them. Used if they cannot be read from
 * guest memory because the types of its kernel are unknown, or if samples have no tasks.
 */
#ifndef VPROF_CLI_RUN_AGENT_MAPPINGS_H
#define VPROF_CLI_RUN_AGENT_MAPPINGS_H

#include "lib/agent/agent_stream.h"
#include "record/recorder.h"

struct agent_mappings;

/* `recorder` is borrowed. */
struct agent_mappings *agent_mappings_new(struct recorder *recorder);
/* NULL is fine. */
void agent_mappings_free(struct agent_mappings *mappings);

/* The agent has (re)started and has forgotten earlier queries. */
void agent_mappings_greet(struct agent_mappings *mappings, const struct vprof_agent_hello *hello);

/* False if the session finds mappings itself, or was told not to. Another kernel of the guest may change that. */
bool agent_mappings_are_wanted(const struct agent_mappings *mappings);
/*
 * Whether mappings are wanted, no query is pending, and the last answer is `interval_ns` old; longer if answers take
 * the guest long.
 */
bool agent_mappings_is_due(const struct agent_mappings *mappings, uint64_t interval_ns);
/* Sends the query, in place of a pending one; pid 0: for all processes. */
void agent_mappings_ask(struct agent_mappings *mappings, GByteArray *to_agent, uint32_t pid);
/* Whether a query is pending. */
bool agent_mappings_is_asking(const struct agent_mappings *mappings);
/* Whether a later answer still resolves earlier samples, which is so if samples have no pid. */
bool agent_mappings_names_past(const struct agent_mappings *mappings);

/*
 * Takes TASK, MAPPING and MAPPINGS_END; ignores others. At the end of an answer, new mappings are written to the
 * recording. If samples have no pid, mappings have none either, and ranges that two processes use differently are left
 * out.
 */
void agent_mappings_take(struct agent_mappings *mappings, const struct agent_message *message);

#endif
