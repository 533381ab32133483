// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files of which the guest has not all in memory: the agent in the guest reads them, one at a time, and the engine then
 * finds them there.
 */
#ifndef VPROF_CLI_RUN_AGENT_READS_H
#define VPROF_CLI_RUN_AGENT_READS_H

#include "lib/agent/agent_stream.h"
#include "record/recorder.h"

struct agent_reads {
	struct recorder *recorder; /* borrowed */
	bool can;                  /* the agent knows the request */
	bool asking;
	uint32_t number; /* of the last one */
};

void agent_reads_init(struct agent_reads *reads, struct recorder *recorder);
/* The agent has (re)started and has forgotten what it was to read. */
void agent_reads_greet(struct agent_reads *reads, const struct vprof_agent_hello *hello);
/* Has it read the next file, if there is one and no other is being read. */
void agent_reads_ask(struct agent_reads *reads, GByteArray *to_agent);
/* Takes READ_DONE. */
void agent_reads_take(struct agent_reads *reads, const struct vprof_agent_read_done *done);

#endif
