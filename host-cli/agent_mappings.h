// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the processes of a guest have mapped, as the agent in it says: where the guest's memory cannot be asked, because
 * nobody knows the types of its kernel.
 */
#ifndef VPROF_CLI_AGENT_MAPPINGS_H
#define VPROF_CLI_AGENT_MAPPINGS_H

#include "lib/agent/agent_stream.h"
#include "run_record.h"

struct agent_mappings;

/* NULL where the session finds out itself, or was not to. `capture` is borrowed. */
struct agent_mappings *agent_mappings_new(struct capture *capture);
void agent_mappings_free(struct agent_mappings *mappings);

/*
 * TASK, MAPPING and MAPPINGS_END; others are left alone. At the end of an answer, what is new goes into the recording.
 * Where samples have no pid, mappings have none either: what two processes have at one address is left out then.
 */
void agent_mappings_take(struct agent_mappings *mappings, const struct agent_message *message);

#endif
