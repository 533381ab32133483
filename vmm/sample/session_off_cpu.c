// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_off_cpu.h"

#include "guest/gprs.h"
#include "lib/record/clock.h"
#include "sample/session_priv.h"
#include "sample/wait_sample.h"
#include "sample/wait_table.h"
#include "stream/statistics.h"

/* [I], but for the waits, which vCPU threads share. */
struct off_cpu {
	struct guest_breakpoint wake; /* of what ends waits */
	bool sees_wakes;
	struct session *session;
	struct wait_table *waits;
};

/* ---- a switch, on the vCPU's thread ---- */

struct switching {
	struct session *session;
	struct sampler *sampler;
	const struct os_kernel *kernel;
	const struct task_view *view;
	uint64_t time_ns;
};

static bool task_of(const struct switching *switching, const struct task *task, struct listed_task *listed)
{
	/* Not the idle tasks: a vCPU that has nothing to do waits for nothing. */
	if (task && task->tid == 0)
		return false;
	if (task && switching->kernel->list->read_at(switching->kernel, switching->view->walk, task->address, listed))
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
	struct wait wait = {.start_time = task->start_time,
	                    .since_ns = switching->time_ns,
	                    .queued_ns = listed.queued_ns,
	                    .state = listed.next_state};

	/* Now, as those that give a lock away unlink who waits for it. */
	if (wait.state != 'R')
		wait_lock_find(switching->kernel, switching->view->walk, &listed, &wait.lock, &wait.owner);
	if (!wait_begin(switching->session->off_cpu->waits, task->address, &wait))
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

/* How much of the wait the task was ready to run. */
static uint64_t queued_of(const struct switching *switching, const struct listed_task *listed, const struct wait *wait,
                          const struct wake *wake)
{
	const uint64_t period_ns = switching->time_ns - wait->since_ns;

	if (wait->state == 'R')
		return period_ns;
	/* Else by the guest's clock, which may differ a little. */
	return MIN(wake->kind != VPROF_WAKER_UNKNOWN ? switching->time_ns - wake->time_ns
	                                             : listed->queued_ns - wait->queued_ns,
	           period_ns);
}

static struct vprof_wait facts_of(const struct wait *wait, const struct wake *wake)
{
	return (struct vprof_wait){.waker = wake->kind,
	                           .waker_pid = wake->task.pid,
	                           .waker_tid = wake->task.tid,
	                           .waker_vcpu = wake->vcpu,
	                           .lock_kind = wait->lock.kind,
	                           .owner_pid = wait->owner.pid,
	                           .owner_tid = wait->owner.tid,
	                           .lock = wait->lock.lock};
}

static const struct task *task_or_none(const struct task *task)
{
	return task->address != 0 ? task : NULL;
}

static void switched_to(const struct switching *switching, const struct task *task)
{
	struct task_cpu cpu = {0};
	struct listed_task listed;
	struct frame frame;
	struct wait wait;
	struct wake wake;

	if (!task_of(switching, task, &listed) || !wait_end(switching->session->off_cpu->waits, task, &wait, &wake))
		return;
	if (!wait_frame_find(switching->kernel, &switching->session->kernel.unwind, switching->view->walk, &listed,
	                     &frame)) {
		statistic_add(&switching->sampler->statistics.off_cpu_unread, 1);
		return;
	}
	if (wait.state != 'R' && wake.kind == VPROF_WAKER_UNKNOWN)
		statistic_add(&switching->sampler->statistics.off_cpu_no_waker, 1);
	const struct vprof_wait facts = facts_of(&wait, &wake);
	const struct counter_wait of_sample = {&facts, task_or_none(&wake.task), task_or_none(&wait.owner)};
	const uint64_t queued_ns = queued_of(switching, &listed, &wait, &wake);
	struct counter_sample sample = wait_sample(task, wait_state(wait.state), &frame, switching->view->walk);

	task_cpu_note(&cpu, switching->view->regs);
	sample.area = cpu.area;
	sample.wait = &of_sample;
	wait_take(switching, &sample, switching->time_ns - queued_ns, switching->time_ns - wait.since_ns - queued_ns);
	sample.task_state = wait_state('R');
	wait_take(switching, &sample, switching->time_ns, queued_ns);
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

/* ---- a wake-up, on the vCPU's thread ---- */

static struct wake wake_of(struct session *session, unsigned vcpu, const struct guest_regs *regs)
{
	const struct os_kernel *kernel = session->kernel.layout;
	struct wake wake = {.time_ns = clock_ns(CLOCK_MONOTONIC), .kind = VPROF_WAKER_TASK, .vcpu = vcpu};
	struct task_cpu cpu = {0};
	struct page_walk walk;

	task_cpu_note(&cpu, regs);
	if (!kernel->tasks->read(kernel, &cpu, session->guest, regs, &walk, &wake.task))
		wake.kind = VPROF_WAKER_UNKNOWN;
	else if (kernel->switches->in_interrupt(kernel, &walk, &cpu, &wake.task))
		wake.kind = VPROF_WAKER_INTERRUPT;
	return wake;
}

static void wake_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                     const struct guest_gprs *gprs)
{
	struct off_cpu *off_cpu = (struct off_cpu *)breakpoint;

	const struct os_kernel *kernel = off_cpu->session->kernel.layout;
	const uint64_t task = kernel->switches->woken(gprs);
	struct page_walk walk;

	/* Most are of tasks that are not seen to wait, or wait for something else. */
	if (!wait_is_open(off_cpu->waits, task))
		return;
	page_walk_init_regs(&walk, off_cpu->session->guest, regs);
	if (!kernel->switches->wakes(kernel, &walk, gprs))
		return;
	const struct wake wake = wake_of(off_cpu->session, vcpu, regs);

	wait_woken(off_cpu->waits, task, &wake);
}

/* ---- the session ---- */

/* Without a breakpoint that is free, there are waits without wakers. */
static void wakes_start(struct off_cpu *off_cpu, const struct os_kernel *kernel)
{
	struct guest *guest = off_cpu->session->guest;
	const gva_t at = kernel->switches->wake_at(kernel);

	off_cpu->wake = (struct guest_breakpoint){.at = at, .what = VPROF_OFF_CPU_EVENT, .hit = wake_hit};
	off_cpu->sees_wakes =
		guest->debug && at.value != 0 && guest->debug->breakpoint_add(guest, &off_cpu->wake, NULL);
}

bool session_off_cpu_start(struct session *session, GError **error)
{
	const struct os_kernel *kernel = session->kernel.layout;

	if (!kernel || !kernel->list) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot record the waits of tasks: %s",
		            kernel && kernel->why[OS_LIST] ? kernel->why[OS_LIST] : "tasks are not told apart");
		return false;
	}
	session->off_cpu = g_new0(struct off_cpu, 1);
	session->off_cpu->session = session;
	session->off_cpu->waits = wait_table_new();
	wakes_start(session->off_cpu, kernel);
	return true;
}

void session_off_cpu_stop(struct session *session)
{
	struct off_cpu *off_cpu = session->off_cpu;

	if (!off_cpu)
		return;
	if (off_cpu->sees_wakes)
		session->guest->debug->breakpoint_remove(session->guest, &off_cpu->wake);
	wait_table_free(off_cpu->waits);
	g_clear_pointer(&session->off_cpu, g_free);
}
