// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples of every wait of a task: how long it was on no vCPU, where it waited, and in which state. A task is noted
 * when its vCPU switches away from it, and sampled when a vCPU switches to it: its stack is then what it was.
 *
 * Waits that begin before the session, or end after it, are not recorded, nor those of idle tasks, and of kernel
 * threads without work (states S and I) only with idle_threads. A wait for something has the time in it that the task
 * then waits for a processor; where the kernel counts that time, it becomes a sample of its own, in state R.
 */
#ifndef VPROF_SAMPLE_SESSION_OFF_CPU_H
#define VPROF_SAMPLE_SESSION_OFF_CPU_H

#include "guest/task_match.h"
#include "sample/session.h"

/* For a session that has started, with off_cpu; main thread. Errors: SESSION_ERROR_UNSUPPORTED. */
bool session_off_cpu_start(struct session *session, GError **error);
/* Once no vCPU switches any more; also where it was not started. */
void session_off_cpu_stop(struct session *session);

/* As sampler_switched, `time_ns`: CLOCK_MONOTONIC. */
void session_off_cpu_switched(struct session *session, unsigned vcpu, const struct task_view *view,
                              const struct task *previous, const struct task *next, uint64_t time_ns);

#endif
