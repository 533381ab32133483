// SPDX-License-Identifier: BSD-2-Clause
#include "run/agent_reads.h"

void agent_reads_init(struct agent_reads *reads, struct recorder *recorder)
{
	*reads = (struct agent_reads){.recorder = recorder};
}

void agent_reads_greet(struct agent_reads *reads, const struct vprof_agent_hello *hello)
{
	reads->can = (hello->can & VPROF_AGENT_CAN_READ) != 0;
	reads->asking = false;
}

void agent_reads_ask(struct agent_reads *reads, GByteArray *to_agent)
{
	struct vprof_agent_read read;

	if (!reads->can || reads->asking || !recorder_read_next(reads->recorder, &read))
		return;
	agent_say_read(to_agent, &read);
	reads->asking = true;
	reads->number = read.number;
}

/* A file that could not be read stays as it is: the process has ended, or does not run in this file any more. */
void agent_reads_take(struct agent_reads *reads, const struct vprof_agent_read_done *done)
{
	if (!reads->asking || done->number != reads->number)
		return;
	reads->asking = false;
	if (done->error == 0)
		recorder_read_done(reads->recorder, done->number);
}
