// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the processes of a guest have mapped, as the agent in it says: where the guest's memory cannot be asked, because
 * nobody knows the types of its kernel, or what is sampled says nothing of tasks.
 */
#ifndef VPROF_CLI_AGENT_MAPPINGS_H
#define VPROF_CLI_AGENT_MAPPINGS_H

#include "capture/capture.h"
#include "lib/agent/agent_stream.h"

struct agent_mappings;

/* `capture` is borrowed. */
struct agent_mappings *agent_mappings_new(struct capture *capture);
/* NULL is fine. */
void agent_mappings_free(struct agent_mappings *mappings);

/* The agent begins: what it was asked before, it does not know any more. */
void agent_mappings_greet(struct agent_mappings *mappings, const struct vprof_agent_hello *hello);

/* Not where the session finds out itself, or was not to. Another kernel of the guest may change that. */
bool agent_mappings_are_wanted(const struct agent_mappings *mappings);
/* And no question is open, and the last answer is `interval_ns` old, or older where answers take the guest long. */
bool agent_mappings_is_due(const struct agent_mappings *mappings, uint64_t interval_ns);
/* Appends the question to what goes to the agent, in place of one that is open; pid 0: of all processes. */
void agent_mappings_ask(struct agent_mappings *mappings, GByteArray *to_agent, uint32_t pid);
/* A question has no answer yet. */
bool agent_mappings_is_asking(const struct agent_mappings *mappings);
/* Whether an answer that comes after the samples names them all the same: where these have no pid. */
bool agent_mappings_names_past(const struct agent_mappings *mappings);

/*
 * TASK, MAPPING and MAPPINGS_END; others are left alone. At the end of an answer, what is new goes into the recording.
 * Where samples have no pid, mappings have none either: what two processes have at one address is left out then.
 */
void agent_mappings_take(struct agent_mappings *mappings, const struct agent_message *message);

#endif
