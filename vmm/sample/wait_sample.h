// SPDX-License-Identifier: BSD-2-Clause
/* What samples of tasks that wait have in common: of looks (session_wall.h) and of switches (session_off_cpu.h). */
#ifndef VPROF_SAMPLE_WAIT_SAMPLE_H
#define VPROF_SAMPLE_WAIT_SAMPLE_H

#include "counter/route.h"
#include "guest/frame.h"
#include "guest/os.h"
#include "guest/unwind.h"

/* enum vprof_task_state (vprof/recording.h) of ps(1)'s letter; VPROF_TASK_RUNNING for those that do not wait. */
uint8_t wait_state(char letter);

/* Whether a task in this state waits for what a profile shows: kernel threads without work (S, I) only with `idle`. */
bool wait_is_shown(const struct listed_task *task, char state, bool idle);

/*
 * The innermost frame that is not the scheduler's, of a task that has switched away: what waits. `unwind`: of the
 * session.
 */
bool wait_frame_find(const struct os_kernel *kernel, const struct unwind_config *unwind, struct page_walk *walk,
                     const struct listed_task *task, struct frame *frame);

/* The lock that it waits for; *lock and *owner, the task that holds it, become zero where they are not known. */
void wait_lock_find(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task,
                    struct os_lock *lock, struct task *owner);

/* The sample of a task that waits in this frame. `walk`: in its process, or any with the kernel's part. */
struct counter_sample wait_sample(const struct task *task, uint8_t state, const struct frame *frame,
                                  const struct page_walk *walk);

#endif
