// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the paths of cgroups into a vCPU's ring: a PERF_RECORD_CGROUP before the first sample of a cgroup, and another
 * when its path changes. On the vCPU's thread. A path is read once for each record, which takes some microseconds.
 */
#ifndef VPROF_STREAM_CGROUP_NAMER_H
#define VPROF_STREAM_CGROUP_NAMER_H

#include "guest/os.h"
#include "stream/announcer.h"

#define CGROUP_NAMER_BUCKETS 64u
#define CGROUP_NAMER_WAYS 4u
#define CGROUP_NAMER_TRIES 7u /* attempts to read a path */

/* A cgroup that was seen; id 0: free. */
struct cgroup_seen {
	struct os_group cgroup;
	unsigned tries; /* attempts left; 0: the path is written, or cannot be read */
};

/* The vCPU's thread only. */
struct cgroup_namer {
	const struct os_kernel *kernel;
	struct announcer *announcer;
	struct cgroup_seen seen[CGROUP_NAMER_BUCKETS][CGROUP_NAMER_WAYS]; /* the newest first */
};

/* Everything is borrowed. */
void cgroup_namer_init(struct cgroup_namer *namer, const struct os_kernel *kernel, struct announcer *announcer);

/*
 * Call before the sample with this id is written. Returns the id of the task's cgroup, and writes the path if it is
 * new; 0 when the cgroup cannot be read. `walk` reads the kernel's memory.
 */
uint64_t cgroup_namer_task(struct cgroup_namer *namer, struct page_walk *walk, const struct task *task,
                           const struct record_id *id);

#endif
