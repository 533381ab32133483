// SPDX-License-Identifier: BSD-2-Clause
/*
 * What stands in a vCPU's ring about the cgroups that its samples are of: a PERF_RECORD_CGROUP with the path, ahead of
 * the first sample of a cgroup, and again by another path. On the vCPU's thread: a path is read once for that, some
 * microseconds.
 */
#ifndef VPROF_SAMPLE_CGROUP_NAMER_H
#define VPROF_SAMPLE_CGROUP_NAMER_H

#include "guest/cgroup.h"
#include "sample/announcer.h"

#define CGROUP_NAMER_BUCKETS 64u
#define CGROUP_NAMER_WAYS 4u
#define CGROUP_NAMER_TRIES 7u /* of a path that cannot be read */

/* A cgroup that was seen; id 0: free. */
struct cgroup_seen {
	struct cgroup cgroup;
	unsigned tries; /* that are left; 0: its path is said, or given up */
};

/* The vCPU's thread only. */
struct cgroup_namer {
	const struct cgroup_layout *layout;
	struct announcer *announcer;
	struct cgroup_seen seen[CGROUP_NAMER_BUCKETS][CGROUP_NAMER_WAYS]; /* the newest first */
};

/* Everything is borrowed. */
void cgroup_namer_init(struct cgroup_namer *namer, const struct cgroup_layout *layout, struct announcer *announcer);

/*
 * Before the sample with this id goes into the ring: the cgroup of its task, in whose kernel `walk` is, by id; 0 when
 * it cannot be read.
 */
uint64_t cgroup_namer_task(struct cgroup_namer *namer, struct page_walk *walk, const struct task *task,
                           const struct record_id *id);

#endif
