// SPDX-License-Identifier: BSD-2-Clause
#include "sample/wait_sample.h"

#include <vprof/recording.h>

#include "guest/processor.h"

#define SCHEDULER_FRAMES 8u /* at most, between a switch and what waits */

uint8_t wait_state(char letter)
{
	switch (letter) {
#define X(id, state, name) \
	case state:        \
		return id;
		VPROF_TASK_STATES(X)
#undef X
	default:
		return VPROF_TASK_RUNNING;
	}
}

bool wait_is_shown(const struct listed_task *task, char state, bool idle)
{
	const bool without_work = !idle && task->kernel_thread && (state == 'S' || state == 'I');

	return !without_work && wait_state(state) != VPROF_TASK_RUNNING;
}

bool wait_frame_find(const struct os_kernel *kernel, const struct unwind_config *unwind, struct page_walk *walk,
                     const struct listed_task *task, struct frame *frame)
{
	enum unwind_end end;

	if (!kernel->list->frame(kernel, walk, task, frame))
		return false;
	struct frame caller = *frame;

	for (unsigned i = 0; i < SCHEDULER_FRAMES && kernel->list->only_schedules(kernel, caller.ip); i++)
		if (unwind_step(unwind, walk, &caller, &end) == STEP_DONE || caller.user)
			return true;
	*frame = caller;
	return true;
}

void wait_lock_find(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task,
                    struct os_lock *lock, struct task *owner)
{
	struct listed_task found;

	*lock = (struct os_lock){.lock = 0};
	*owner = (struct task){.address = 0};
	if (kernel->waits && kernel->waits->lock(kernel, walk, task, lock) && lock->owner != 0 &&
	    kernel->list->read_at(kernel, walk, lock->owner, &found))
		*owner = found.task;
}

struct counter_sample wait_sample(const struct task *task, uint8_t state, const struct frame *frame,
                                  const struct page_walk *walk)
{
	return (struct counter_sample){
		.in_guest = true,
		.regs = processor_of(walk->tables.processor)->frames->registers(frame, walk),
		.task = task->address,
		.task_state = state,
	};
}
