// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples of the tasks that wait: a look at the guest's list of tasks, some times a second, and a sample of each task
 * that is not on a vCPU, with its state and the call chain that it waits in. Nothing is interrupted for it: a task that
 * waits has its registers in memory. The samples go into the ring of vCPU 0. Main thread only.
 *
 * A sample's period is the time since the task was looked at last, less the CPU time that it has used since: so all
 * waiting of a task adds up, in samples of where it was found. The stack of a task that has not run since its last
 * sample is not walked again. Kernel threads without work (states S and I) are left out, unless idle_threads is set.
 */
#ifndef VPROF_SAMPLE_SESSION_WALL_H
#define VPROF_SAMPLE_SESSION_WALL_H

#include "sample/session.h"

#define WALL_SAMPLES_MAX 1024u /* of one look; with more tasks, the next look goes on */
#define WALL_LOAD_MAX 20u      /* a look is followed by a pause of at least so many times as long */

/* For a session that has started, with wall_hz. Errors: SESSION_ERROR_UNSUPPORTED. */
bool session_wall_start(struct session *session, GError **error);
void session_wall_stop(struct session *session); /* also where it was not started */
/* The guest may have another kernel, or the samplers announce all anew: what is known of tasks is not valid any more.
 */
void session_wall_forget(struct session *session);

/* One look, as the session's own timer has them. `now_ns`: CLOCK_MONOTONIC. Returns how many tasks were sampled. */
unsigned session_wall_look(struct session *session, uint64_t now_ns);

#endif
