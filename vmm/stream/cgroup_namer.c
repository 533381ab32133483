// SPDX-License-Identifier: BSD-2-Clause
#include "stream/cgroup_namer.h"

#include <string.h>

void cgroup_namer_init(struct cgroup_namer *namer, const struct os_kernel *kernel, struct announcer *announcer)
{
	*namer = (struct cgroup_namer){.kernel = kernel, .announcer = announcer};
}

/* The same id at another address is a new cgroup: the old one is gone. */
static bool same_cgroup(const struct os_group *a, const struct os_group *b)
{
	return a->id == b->id && a->node == b->node;
}

/* The entry of `cgroup`. A new one replaces the oldest of its bucket. Valid until the next call. */
static struct cgroup_seen *seen_find(struct cgroup_namer *namer, const struct os_group *cgroup)
{
	struct cgroup_seen *bucket =
		namer->seen[(cgroup->id * UINT64_C(0x9e3779b97f4a7c15) >> 32) % CGROUP_NAMER_BUCKETS];
	struct cgroup_seen found = {*cgroup, CGROUP_NAMER_TRIES};
	size_t i = 0;

	while (i < CGROUP_NAMER_WAYS - 1 && !same_cgroup(&bucket[i].cgroup, cgroup))
		i++;
	if (same_cgroup(&bucket[i].cgroup, cgroup))
		found = bucket[i];
	memmove(bucket + 1, bucket, i * sizeof(*bucket));
	bucket[0] = found;
	return bucket;
}

/* True when the path is written, or no attempts are left. */
static bool path_write(struct cgroup_namer *namer, struct page_walk *walk, struct cgroup_seen *seen,
                       const struct record_id *id)
{
	char buffer[OS_GROUP_PATH_BYTES];

	if (announcer_room(namer->announcer, ANNOUNCE_CGROUPS, id->time_ns) == 0)
		return false;
	const uint64_t begin_ns = announcer_begin(namer->announcer);
	const char *path = namer->kernel->groups->path(namer->kernel, walk, &seen->cgroup, buffer);

	announcer_end(namer->announcer, begin_ns);
	if (!path)
		return --seen->tries == 0;
	return announce_cgroup(namer->announcer, &(struct record_cgroup){seen->cgroup.id, {path}}, id);
}

uint64_t cgroup_namer_task(struct cgroup_namer *namer, struct page_walk *walk, const struct task *task,
                           const struct record_id *id)
{
	struct os_group cgroup;

	if (!namer->kernel->groups->read(namer->kernel, walk, task, &cgroup))
		return 0;
	struct cgroup_seen *seen = seen_find(namer, &cgroup);

	if (seen->tries != 0 && path_write(namer, walk, seen, id))
		seen->tries = 0;
	return cgroup.id;
}
