// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_off_cpu.h"

#include <stdatomic.h>

#include "sample/session_priv.h"
#include "sample/statistics.h"
#include "sample/wait_sample.h"

#define SLOT_BITS 15u /* as many as tasks that Linux allows by default (PID_MAX_DEFAULT) */
#define SLOTS (1u << SLOT_BITS)
#define SLOTS_TRIED 16u /* that a task may be in: as many, behind the first */
#define SLOT_TAKEN UINT64_C(1)

/* A wait that has begun. */
struct wait {
	uint64_t start_time; /* of its task */
	uint64_t since_ns;
	uint64_t queued_ns; /* of its task then */
	char state;
};

/*
 * [a] atomic. The vCPU that switches away from a task writes its wait, and the one that switches to it reads it: the
 * guest does the second only after the first is done (on_cpu of its task_struct), as one that ran on two vCPUs would
 * have one stack for both.
 */
struct slot {
	_Atomic uint64_t task; /* [a] the address of its task_struct; 0: free; SLOT_TAKEN: to be written */
	struct wait wait;      /* of the one that has set `task` */
};

struct off_cpu {
	struct slot slots[SLOTS];
};

/* ---- the table ---- */

static struct slot *slot_try(struct off_cpu *table, uint64_t task, unsigned i)
{
	return &table->slots[((unsigned)(task * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS)) + i) % SLOTS];
}

static struct slot *slot_find(struct off_cpu *table, uint64_t task)
{
	for (unsigned i = 0; i < SLOTS_TRIED; i++) {
		struct slot *slot = slot_try(table, task, i);

		/* Pairs with the release in wait_begin. */
		if (atomic_load_explicit(&slot->task, memory_order_acquire) == task)
			return slot;
	}
	return NULL;
}

static struct slot *slot_take(struct off_cpu *table, uint64_t task)
{
	for (unsigned i = 0; i < SLOTS_TRIED; i++) {
		struct slot *slot = slot_try(table, task, i);
		uint64_t none = 0;

		/* Acquire: what the last one has read there was read before. Pairs with the release in wait_end. */
		if (atomic_compare_exchange_strong_explicit(&slot->task, &none, SLOT_TAKEN, memory_order_acquire,
		                                            memory_order_relaxed))
			return slot;
	}
	return NULL;
}

/* A task that ended while it waited has left its own to the next with its task_struct. False: there is no room. */
static bool wait_begin(struct off_cpu *table, uint64_t task, const struct wait *wait)
{
	struct slot *slot = slot_find(table, task);

	if (!slot)
		slot = slot_take(table, task);
	if (!slot)
		return false;
	slot->wait = *wait;
	atomic_store_explicit(&slot->task, task, memory_order_release);
	return true;
}

static bool wait_end(struct off_cpu *table, const struct task *task, struct wait *wait)
{
	struct slot *slot = slot_find(table, task->address);

	if (!slot)
		return false;
	*wait = slot->wait;
	atomic_store_explicit(&slot->task, 0, memory_order_release);
	return wait->start_time == task->start_time;
}

/* ---- a switch, on the vCPU's thread ---- */

struct switching {
	struct session *session;
	struct sampler *sampler;
	const struct kernel_layout *kernel;
	const struct task_view *view;
	uint64_t time_ns;
};

static bool task_of(const struct switching *switching, const struct task *task, struct listed_task *listed)
{
	/* Not the idle tasks: a vCPU that has nothing to do waits for nothing. */
	if (task && task->tid == 0)
		return false;
	if (task && listed_task_read(&switching->kernel->list, &switching->kernel->tasks, switching->view->walk,
	                             task->address, listed))
		return true;
	statistic_add(&switching->sampler->statistics.off_cpu_unread, 1);
	return false;
}

static void switched_from(const struct switching *switching, const struct task *task)
{
	struct listed_task listed;

	if (!task_of(switching, task, &listed) ||
	    !wait_is_shown(&listed, listed.next_state, switching->session->config.idle_threads))
		return;
	const struct wait wait = {.start_time = task->start_time,
	                          .since_ns = switching->time_ns,
	                          .queued_ns = listed.queued_ns,
	                          .state = listed.next_state};

	if (!wait_begin(switching->session->off_cpu, task->address, &wait))
		statistic_add(&switching->sampler->statistics.off_cpu_dropped, 1);
}

static void wait_take(const struct switching *switching, struct counter_sample *sample, uint64_t end_ns,
                      uint64_t period_ns)
{
	if (period_ns == 0)
		return;
	sample->time_ns = end_ns;
	sample->overflow = (struct counter_overflow){.event = session_config_off_cpu(&switching->session->config),
	                                             .period = period_ns};
	sampler_take_waiting(switching->sampler, sample);
}

static void switched_to(const struct switching *switching, const struct task *task)
{
	const struct guest_regs *regs = switching->view->regs;
	const uint64_t now_ns = switching->time_ns;
	struct listed_task listed;
	struct frame frame;
	struct wait wait;

	if (!task_of(switching, task, &listed) || !wait_end(switching->session->off_cpu, task, &wait))
		return;
	if (!wait_frame_find(switching->kernel, &switching->session->kernel.unwind, switching->view->walk,
	                     listed.stack_pointer, &frame)) {
		statistic_add(&switching->sampler->statistics.off_cpu_unread, 1);
		return;
	}
	const uint64_t period_ns = now_ns - wait.since_ns;
	/* By the guest's clock, which may differ a little. */
	const uint64_t queued_ns = wait.state == 'R' ? period_ns : MIN(listed.queued_ns - wait.queued_ns, period_ns);
	struct counter_sample sample = wait_sample(task, wait_state(wait.state), &frame, regs->cr3, regs->la57);

	sample.area = regs->gs_base;
	wait_take(switching, &sample, now_ns - queued_ns, period_ns - queued_ns);
	sample.task_state = wait_state('R');
	wait_take(switching, &sample, now_ns, queued_ns);
}

void session_off_cpu_switched(struct session *session, unsigned vcpu, const struct task_view *view,
                              const struct task *previous, const struct task *next, uint64_t time_ns)
{
	const struct switching switching = {.session = session,
	                                    .sampler = &session->samplers[vcpu],
	                                    .kernel = session->kernel.layout,
	                                    .view = view,
	                                    .time_ns = time_ns};

	switched_from(&switching, previous);
	switched_to(&switching, next);
}

/* ---- the session ---- */

bool session_off_cpu_start(struct session *session, GError **error)
{
	const struct kernel_layout *kernel = session->kernel.layout;

	if (!kernel || !kernel->has_list) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot record the waits of tasks: %s",
		            kernel && kernel->list_why ? kernel->list_why : "tasks are not told apart");
		return false;
	}
	session->off_cpu = g_new0(struct off_cpu, 1);
	return true;
}

void session_off_cpu_stop(struct session *session)
{
	g_clear_pointer(&session->off_cpu, g_free);
}
