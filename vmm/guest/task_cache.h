// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tasks that a vCPU was seen to run: of fixed size, the oldest of a bucket makes room for a new one. All zero at
 * first.
 */
#ifndef VPROF_GUEST_TASK_CACHE_H
#define VPROF_GUEST_TASK_CACHE_H

#include "guest/task.h"

#define TASK_CACHE_BUCKETS 64u
#define TASK_CACHE_WAYS 4u
#define TASK_CACHE_ENTRIES (TASK_CACHE_BUCKETS * TASK_CACHE_WAYS)

struct task_entry {
	struct task task; /* as it was last seen; address 0: the entry is free */
	bool announced;   /* the keeper of the cache said that it is there, and will say that it has gone */
};

struct task_cache {
	struct task_entry entries[TASK_CACHE_BUCKETS][TASK_CACHE_WAYS]; /* the newest first */
	unsigned next;                                                  /* of task_cache_next */
};

/* The same task, perhaps by another name; NULL. */
struct task_entry *task_cache_find(struct task_cache *cache, const struct task *task);
/* Puts it there, or brings what is known of it up to date. The entry is valid until the next call. */
struct task_entry *task_cache_put(struct task_cache *cache, const struct task *task);
/* One entry after the other, for ever; NULL for a free one. */
struct task_entry *task_cache_next(struct task_cache *cache);

/* A number that hardly two tasks of a guest have in common; never 0. */
uint64_t task_hash(const struct task *task);

#endif
