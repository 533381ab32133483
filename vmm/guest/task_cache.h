// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tasks that a vCPU was seen to run. Of fixed size: a new task replaces the oldest of its bucket. Starts as zero.
 */
#ifndef VPROF_GUEST_TASK_CACHE_H
#define VPROF_GUEST_TASK_CACHE_H

#include "guest/task.h"

#define TASK_CACHE_BUCKETS 64u
#define TASK_CACHE_WAYS 4u
#define TASK_CACHE_ENTRIES (TASK_CACHE_BUCKETS * TASK_CACHE_WAYS)

struct task_entry {
	struct task task; /* as last seen; address 0: the entry is free */
	bool announced;   /* its start was announced, and its end is to be announced */
	uint32_t execs;   /* struct os_tasks: execs */
};

struct task_cache {
	struct task_entry entries[TASK_CACHE_BUCKETS][TASK_CACHE_WAYS]; /* the newest first */
	unsigned next;                                                  /* of task_cache_next */
};

/* Finds the task, even under another name; NULL. */
struct task_entry *task_cache_find(struct task_cache *cache, const struct task *task);
/* Adds or updates the task. The entry is valid until the next call. */
struct task_entry *task_cache_put(struct task_cache *cache, const struct task *task);
/* The next entry, in a cycle; NULL for a free one. */
struct task_entry *task_cache_next(struct task_cache *cache);

/* A hash of a task; never 0. */
uint64_t task_hash(const struct task *task);

#endif
