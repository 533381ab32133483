// SPDX-License-Identifier: BSD-2-Clause
#include "sample/counting_log.h"

#include <vprof/exit.h>

#include "lib/record/clock.h"

void counting_log_init(struct counting_log *log, const struct os_kernel *kernel, unsigned vcpu, uint64_t event_id,
                       struct ring *ring, struct task_totals *totals, struct task_claims *claims)
{
	const struct sample_stream_config stream = {.kernel = kernel, .claims = claims, .by_switches = true};

	*log = (struct counting_log){.kernel = kernel, .totals = totals, .vcpu = vcpu, .event_id = event_id};
	sample_stream_init(&log->stream, &stream, ring);
}

/* ---- stalls ---- */

bool counting_log_is_stalled(const struct counting_log *log)
{
	return atomic_load_explicit(&log->stalled_since, memory_order_relaxed) != 0;
}

static uint64_t stalled_ns(const struct counting_log *log)
{
	const uint64_t since = atomic_load_explicit(&log->stalled_since, memory_order_relaxed);

	return since != 0 ? clock_ns(CLOCK_MONOTONIC) - since : 0;
}

static void stall_begin(struct counting_log *log)
{
	statistic_add(&log->statistics.stalls, 1);
	statistic_add(&log->statistics.intr_bufferfull, 1);
	statistic_set(&log->stalled_since, clock_ns(CLOCK_MONOTONIC));
	ring_wake(log->stream.ring);
}

static void stall_end(struct counting_log *log)
{
	statistic_add(&log->statistics.stalled_ns, stalled_ns(log));
	statistic_set(&log->stalled_since, 0);
}

void counting_log_statistics_read(const struct counting_log *log, struct session_statistics *out)
{
	statistics_read(&log->statistics, log->stream.ring, out);
	out->stalled_ns += stalled_ns(log);
}

/* ---- totals ---- */

/*
 * The slot of a task, or a free one that becomes its own; NULL: there is none. A task runs on one vCPU at a time, so
 * there is no other that takes a slot for it. Relaxed: the guest orders what its vCPUs do with a task.
 */
static struct task_total *total_find(struct task_totals *totals, uint64_t task)
{
	struct task_total *bucket = totals->slots[task >> 32 & (TASK_TOTALS_BUCKETS - 1)];

	for (unsigned i = 0; i < TASK_TOTALS_WAYS; i++)
		if (atomic_load_explicit(&bucket[i].task, memory_order_relaxed) == task)
			return &bucket[i];
	for (unsigned i = 0; i < TASK_TOTALS_WAYS; i++) {
		uint64_t none = 0;

		if (atomic_compare_exchange_strong_explicit(&bucket[i].task, &none, task, memory_order_acquire,
		                                            memory_order_relaxed))
			return &bucket[i];
	}
	return NULL;
}

static void total_add(struct task_total *total, const struct counter_reading *slice)
{
	atomic_fetch_add_explicit(&total->value, slice->value, memory_order_relaxed);
	atomic_fetch_add_explicit(&total->enabled_ns, slice->enabled_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&total->running_ns, slice->running_ns, memory_order_relaxed);
}

/* Frees the slot. Release: the next task that takes it begins at 0. */
static struct counter_reading total_take(struct task_total *total)
{
	const struct counter_reading sum = {
		.value = atomic_exchange_explicit(&total->value, 0, memory_order_relaxed),
		.enabled_ns = atomic_exchange_explicit(&total->enabled_ns, 0, memory_order_relaxed),
		.running_ns = atomic_exchange_explicit(&total->running_ns, 0, memory_order_relaxed),
	};

	atomic_store_explicit(&total->task, 0, memory_order_release);
	return sum;
}

/* ---- records ---- */

static struct record_id id_of(const struct counting_log *log, const struct task *task)
{
	const bool known = task->address != 0;

	return (struct record_id){
		.pid = known ? task->pid : VPROF_PID_UNKNOWN,
		.tid = known ? task->tid : VPROF_PID_UNKNOWN,
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.cpu = log->vcpu,
		.id = log->event_id,
	};
}

static void slice_write(struct counting_log *log, const struct record_id *id, const struct counter_reading *slice,
                        uint16_t mode, uint64_t ip)
{
	const struct record_sample sample = {
		.id = id->id,
		.ip = ip,
		.pid = id->pid,
		.tid = id->tid,
		.time_ns = id->time_ns,
		.cpu = id->cpu,
		.period = slice->value,
		.misc = mode,
	};

	if (sample_stream_write(&log->stream, &sample, false)) {
		statistic_add(&log->statistics.sample, 1);
		return;
	}
	statistic_add(&log->statistics.dropbuf_sample, 1);
	statistic_add(&log->statistics.intr_bufferfull, 1);
}

/* Adds to the task's total, which is written once the task has ended. */
static void total_write(struct counting_log *log, struct page_walk *walk, const struct task *task,
                        const struct record_id *id, const struct counter_reading *slice)
{
	struct task_total *total = total_find(log->totals, task_hash(task));

	if (!total)
		return;
	total_add(total, slice);
	if (!log->kernel->tasks->has_ended(log->kernel, walk, task))
		return;
	const struct counter_reading sum = total_take(total);

	announce_read(&log->stream.announcer,
	              &(struct record_read){id->pid, id->tid, sum.value, sum.enabled_ns, sum.running_ns}, id);
}

bool counting_log_entered(struct counting_log *log, const struct task_view *view, const struct task *task)
{
	log->task = task ? *task : (struct task){0};
	if (log->stalls && ring_is_scarce(log->stream.ring)) {
		stall_begin(log);
		return false;
	}
	if (!task)
		return true;
	const struct record_id id = id_of(log, task);

	namer_entered(&log->stream.namer, view->walk, task, &id);
	statistic_set(&log->statistics.dropbuf_task, log->stream.announcer.dropped);
	return true;
}

/* What is due of a task that may have ended: its total and its end. */
static void task_left(struct counting_log *log, const struct task_view *view, const struct task *task,
                      const struct record_id *id, const struct counter_reading *slice)
{
	total_write(log, view->walk, task, id, slice);
	namer_left(&log->stream.namer, view->walk, task, id);
	statistic_set(&log->statistics.dropbuf_task, log->stream.announcer.dropped);
}

void counting_log_passed(struct counting_log *log, const struct task_view *view, const struct task *task)
{
	const struct counter_reading nothing = {0};

	if (!counting_log_is_stalled(log))
		return;
	stall_end(log);
	if (!task || task->address == 0 || task->address != log->task.address)
		return;
	const struct record_id id = id_of(log, task);

	task_left(log, view, task, &id, &nothing);
}

void counting_log_left(struct counting_log *log, const struct task_view *view, const struct task *task,
                       const struct counter_reading *slice)
{
	/* Under the name that it has now, unless a switch was not seen. */
	const struct task *left = task && task->address == log->task.address ? task : &log->task;
	const struct record_id id = id_of(log, left);

	slice_write(log, &id, slice, PERF_RECORD_MISC_KERNEL, guest_regs_ip(view->regs));
	if (left->address == 0)
		return;
	if (left == task)
		task_left(log, view, task, &id, slice);
	else
		total_write(log, view->walk, left, &id, slice);
}

void counting_log_end(struct counting_log *log, const struct counter_reading *slice)
{
	const struct record_id id = id_of(log, &log->task);

	if (counting_log_is_stalled(log))
		stall_end(log);
	if (slice)
		slice_write(log, &id, slice, PERF_RECORD_MISC_HYPERVISOR, vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0));
	ring_write_lost(log->stream.ring, &id, true);
	ring_hand_over(log->stream.ring);
}
