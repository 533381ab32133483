// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of the tasks in a recording, by thread and time: a thread has the name that PERF_RECORD_COMM gave it last,
 * in time and not in the order of the file.
 */
#ifndef VPROF_PROFILE_COMMS_H
#define VPROF_PROFILE_COMMS_H

#include <stdint.h>

struct comms;

struct comms *comms_new(void);
void comms_free(struct comms *comms);

/* All of them before the first comms_find. */
void comms_add(struct comms *comms, uint32_t tid, uint64_t time_ns, const char *comm);

/*
 * The name of `tid` at that time, never NULL. As perf does it, a thread without one is ":TID", and 0 is "swapper".
 * Lives as long as `comms`.
 */
const char *comms_find(struct comms *comms, uint32_t tid, uint64_t time_ns);

#endif
