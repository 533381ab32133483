// SPDX-License-Identifier: BSD-2-Clause
#include "stream/namer.h"

#include <string.h>

void namer_init(struct namer *namer, const struct os_kernel *kernel, struct task_claims *claims,
                struct announcer *announcer, bool by_switches)
{
	*namer = (struct namer){.kernel = kernel, .claims = claims, .announcer = announcer, .by_switches = by_switches};
}

/* Relaxed: nothing else is published by it; the time stamps order the records. */
static bool task_claim(struct task_claims *claims, const struct task *task)
{
	uint64_t hash = task_hash(task);

	return atomic_exchange_explicit(&claims->slots[hash >> 16 & (TASK_CLAIMS - 1)], hash, memory_order_relaxed) !=
	       hash;
}

static void task_unclaim(struct task_claims *claims, const struct task *task)
{
	atomic_store_explicit(&claims->slots[task_hash(task) >> 16 & (TASK_CLAIMS - 1)], 0, memory_order_relaxed);
}

/* Writes a FORK or EXIT of `task`. The parent is 0 when it cannot be read. `again`: without room, the caller does. */
static bool task_write(struct namer *namer, uint32_t type, bool again, struct page_walk *walk, const struct task *task,
                       const struct record_id *sample)
{
	const struct record_id id = {
		.pid = task->pid, .tid = task->tid, .time_ns = sample->time_ns, .cpu = sample->cpu, .id = sample->id};
	struct task_parent parent = {0, 0};

	if (type == PERF_RECORD_FORK)
		namer->kernel->tasks->parent_ids(namer->kernel, walk, task, &parent);

	const struct record_task said = {type, task->pid, parent.pid, task->tid, parent.tid, id.time_ns};

	return again ? announce_task(namer->announcer, &said, &id) : announce_end(namer->announcer, &said, &id);
}

/* True when this vCPU has announced the task. */
static bool task_announce(struct namer *namer, struct page_walk *walk, const struct task *task,
                          const struct record_id *id)
{
	if (!task_claim(namer->claims, task))
		return false;
	if (task_write(namer, PERF_RECORD_FORK, true, walk, task, id))
		return true;
	task_unclaim(namer->claims, task);
	return false;
}

static void task_name(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id)
{
	struct task_entry *known = task_cache_find(&namer->tasks, task);
	const uint32_t execs = namer->by_switches ? namer->kernel->tasks->execs(namer->kernel, walk, task) : 0;
	const struct record_comm named = {
		.pid = id->pid, .tid = id->tid, .exec = known && known->execs != execs, .comm = {task->comm}};

	if (known && !named.exec && known->task.pid == task->pid &&
	    memcmp(known->task.comm, task->comm, TASK_COMM_BYTES) == 0)
		return;
	bool announced = !known && task_announce(namer, walk, task, id);

	/* If the name did not fit, the next sample tries again. */
	if (announce_comm(namer->announcer, &named, id)) {
		struct task_entry *entry = task_cache_put(&namer->tasks, task);

		entry->announced |= announced;
		entry->execs = execs;
	} else if (announced) {
		task_unclaim(namer->claims, task);
	}
}

/* Checks one more of the known tasks for its end. */
static void task_check_end(struct namer *namer, struct page_walk *walk, const struct task *current,
                           const struct record_id *id)
{
	struct task_entry *entry = task_cache_next(&namer->tasks);

	if (!entry || entry->task.address == current->address ||
	    !namer->kernel->tasks->has_ended(namer->kernel, walk, &entry->task))
		return;
	if (!entry->announced || namer->by_switches ||
	    task_write(namer, PERF_RECORD_EXIT, true, walk, &entry->task, id))
		*entry = (struct task_entry){0};
}

void namer_task(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id)
{
	/* The idle tasks of all vCPUs are pid 0; the recording names it once. */
	if (task->tid != 0)
		task_name(namer, walk, task, id);
	task_check_end(namer, walk, task, id);
}

void namer_entered(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id)
{
	struct task_entry *known = task_cache_find(&namer->tasks, task);

	/* What it has executed on another vCPU was seen there. */
	if (known && namer->by_switches)
		known->execs = namer->kernel->tasks->execs(namer->kernel, walk, task);
	namer_task(namer, walk, task, id);
}

void namer_left(struct namer *namer, struct page_walk *walk, const struct task *task, const struct record_id *id)
{
	struct task_entry *entry;

	if (task->tid == 0)
		return;
	task_name(namer, walk, task, id);
	entry = task_cache_find(&namer->tasks, task);
	if (!entry || !namer->kernel->tasks->has_ended(namer->kernel, walk, task))
		return;
	task_write(namer, PERF_RECORD_EXIT, false, walk, task, id);
	*entry = (struct task_entry){0};
}
