// SPDX-License-Identifier: BSD-2-Clause
/*
 * How records about the tasks of its samples get into a vCPU's ring: which tasks there are, and their names, mappings,
 * modules, cgroups and switches. Each record goes ahead of the sample that needs it. The vCPU's thread only.
 */
#ifndef VPROF_STREAM_ANNOUNCER_H
#define VPROF_STREAM_ANNOUNCER_H

#include "stream/ring.h"

struct announcer {
	struct ring *ring; /* borrowed; NULL only with `mapped` */
	/* Takes mappings instead of the ring; NULL. */
	bool (*mapped)(struct announcer *announcer, const struct record_mmap *mmap);
	uint64_t dropped; /* records that found no room; they are announced again with a later sample */
};

/* False: the ring has no room. `id` is that of the sample. */
bool announce_task(struct announcer *announcer, const struct record_task *task, const struct record_id *id);
bool announce_comm(struct announcer *announcer, const struct record_comm *comm, const struct record_id *id);
bool announce_mmap(struct announcer *announcer, const struct record_mmap *mmap, const struct record_id *id);
bool announce_cgroup(struct announcer *announcer, const struct record_cgroup *cgroup, const struct record_id *id);
/* These are not announced again, so they are not in `dropped`. */
bool announce_read(struct announcer *announcer, const struct record_read *read, const struct record_id *id);
bool announce_switch(struct announcer *announcer, const struct record_switch *change, const struct record_id *id);

#endif
