// SPDX-License-Identifier: BSD-2-Clause
/* A process that reads a file of the guest into its page cache. A file system that does not answer stops only that. */
#ifndef VPROF_AGENT_READER_H
#define VPROF_AGENT_READER_H

#include <sys/types.h>
#include <vprof/agent.h>

/* Zero: nothing is read. */
struct reader {
	pid_t pid; /* 0: nothing is read */
	uint32_t number;
};

/* Returns 0, or an errno; EBUSY while another file is read. */
int reader_start(struct reader *reader, const struct vprof_agent_read *order);
/* The process `pid` has been waited for. Returns 0 when it has read all of the file, or an errno. */
int reader_ended(struct reader *reader, int wait_status);
/* Does not wait for its end. */
void reader_stop(struct reader *reader);

#endif
