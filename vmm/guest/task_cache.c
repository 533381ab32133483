// SPDX-License-Identifier: BSD-2-Clause
#include "guest/task_cache.h"

#include <string.h>

static bool same_task(const struct task *a, const struct task *b)
{
	return a->address == b->address && a->start_time == b->start_time && a->tid == b->tid;
}

/* A task_struct is a few KiB long and aligned to 64 bytes. */
uint64_t task_hash(const struct task *task)
{
	return (task->address >> 6 ^ task->start_time) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static struct task_entry *bucket_of(struct task_cache *cache, const struct task *task)
{
	return cache->entries[task_hash(task) >> 32 & (TASK_CACHE_BUCKETS - 1)];
}

struct task_entry *task_cache_find(struct task_cache *cache, const struct task *task)
{
	struct task_entry *bucket = bucket_of(cache, task);

	for (size_t i = 0; i < TASK_CACHE_WAYS; i++)
		if (same_task(&bucket[i].task, task))
			return &bucket[i];
	return NULL;
}

struct task_entry *task_cache_put(struct task_cache *cache, const struct task *task)
{
	struct task_entry *bucket = bucket_of(cache, task);
	struct task_entry *known = task_cache_find(cache, task);
	struct task_entry entry = {.task = *task, .announced = known && known->announced};
	size_t older = known ? (size_t)(known - bucket) : TASK_CACHE_WAYS - 1;

	memmove(bucket + 1, bucket, older * sizeof(*bucket));
	bucket[0] = entry;
	return bucket;
}

struct task_entry *task_cache_next(struct task_cache *cache)
{
	struct task_entry *entry = &cache->entries[0][0] + cache->next;

	cache->next = (cache->next + 1) % TASK_CACHE_ENTRIES;
	return entry->task.address != 0 ? entry : NULL;
}
