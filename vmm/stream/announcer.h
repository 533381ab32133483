// SPDX-License-Identifier: BSD-2-Clause
/*
 * How records about the tasks of its samples get into a vCPU's ring: which tasks there are, and their names, mappings,
 * modules, cgroups and switches. Each record goes ahead of the sample that needs it. The vCPU's thread only.
 *
 * A guest decides how much there is to announce. Mappings, build-ids and cgroups therefore have a budget: they get one
 * part in ANNOUNCE_SHARE of each second of the vCPU, and in each second one part in ANNOUNCE_SHARE of the ring's bytes.
 * What is over the budget waits for a later sample. Tasks, their names and their ends are not limited: they are short.
 */
#ifndef VPROF_STREAM_ANNOUNCER_H
#define VPROF_STREAM_ANNOUNCER_H

#include "stream/ring.h"

#define ANNOUNCE_SHARE 20u
#define ANNOUNCE_SAVED_S 10u                    /* at most so many seconds of unused bytes are saved up */
#define ANNOUNCE_BYTES_MIN (UINT32_C(16) << 10) /* a second, in a small ring */

enum announce_kind { ANNOUNCE_MAPPINGS, ANNOUNCE_BUILD_IDS, ANNOUNCE_CGROUPS, ANNOUNCE_KINDS };

/* What may still be spent; below 0 where the last announcement was dearer. */
struct announce_budget {
	uint64_t since_ns; /* CLOCK_MONOTONIC; 0: nothing was asked yet */
	int64_t bytes, ns;
};

struct announcer {
	struct ring *ring; /* borrowed; NULL only with `mapped` */
	/* Takes mappings instead of the ring; NULL. */
	bool (*mapped)(struct announcer *announcer, const struct record_mmap *mmap);
	uint64_t dropped; /* records that found no room; they are announced again with a later sample */
	struct announce_budget budget;
	uint64_t later[ANNOUNCE_KINDS]; /* times that something was over the budget and left to a later sample */
};

/*
 * Bytes that may be announced at the time of a sample, if anything may; 0: not now, which is counted. Some time of the
 * budget is left as well. Without a ring, there is no limit.
 */
size_t announcer_room(struct announcer *announcer, enum announce_kind kind, uint64_t time_ns);
void announcer_count_later(struct announcer *announcer, enum announce_kind kind);
/* Around reading guest memory for an announcement: what it takes is paid from the budget. */
uint64_t announcer_begin(const struct announcer *announcer);
void announcer_end(struct announcer *announcer, uint64_t begin_ns);

/* False: the ring has no room. `id` is that of the sample. */
bool announce_task(struct announcer *announcer, const struct record_task *task, const struct record_id *id);
bool announce_comm(struct announcer *announcer, const struct record_comm *comm, const struct record_id *id);
/* These two are paid from the budget; the caller asks for room before. */
bool announce_mmap(struct announcer *announcer, const struct record_mmap *mmap, const struct record_id *id);
bool announce_cgroup(struct announcer *announcer, const struct record_cgroup *cgroup, const struct record_id *id);
/* These are not announced again: what finds no room is lost, and not in `dropped`. */
bool announce_end(struct announcer *announcer, const struct record_task *task, const struct record_id *id);
bool announce_read(struct announcer *announcer, const struct record_read *read, const struct record_id *id);
bool announce_switch(struct announcer *announcer, const struct record_switch *change, const struct record_id *id);

#endif
