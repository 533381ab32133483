// SPDX-License-Identifier: BSD-2-Clause
/*
 * A vCPU's path from an event to its ring: the record of the event, and ahead of it what announces the task that it is
 * of, its mappings, its cgroup and the kernel's modules. On the vCPU's thread, or the route's, but for what says
 * otherwise.
 */
#ifndef VPROF_STREAM_SAMPLE_STREAM_H
#define VPROF_STREAM_SAMPLE_STREAM_H

#include "stream/cgroup_namer.h"
#include "stream/mapper.h"
#include "stream/module_mapper.h"
#include "stream/namer.h"

/*
 * Makes `n` rings in place of those in `rings`, which are freed; on error, those stay. NULL: there is none. Main
 * thread. Errors: G_FILE_ERROR.
 */
bool sample_rings_make(struct ring **rings, unsigned n, size_t data_bytes, GError **error);
void sample_rings_free(struct ring **rings, unsigned n);

/* Everything is borrowed. */
struct sample_stream_config {
	const struct os_kernel *kernel; /* with tasks; NULL: they are not told apart, and nothing is announced */
	struct task_claims *claims;     /* shared by the streams of one set of rings */
	struct table_store *tables;     /* mapper_init */
	bool by_switches;               /* namer_init */
	/* What is announced besides tasks, as far as `kernel` has it. */
	bool mappings, groups, modules;
};

struct sample_stream {
	struct ring *ring; /* borrowed; NULL: events only count */
	const struct os_kernel *kernel;
	struct announcer announcer;
	struct namer namer;
	struct mapper *mapper;         /* NULL: mappings are not announced */
	struct cgroup_namer *cgroups;  /* NULL */
	struct module_mapper *modules; /* NULL */
};

/* Allocates; any thread. The stream does not move until sample_stream_deinit. */
void sample_stream_init(struct sample_stream *stream, const struct sample_stream_config *config, struct ring *ring);
void sample_stream_deinit(struct sample_stream *stream); /* fine for a stream of zeros */

/* What announcing a task has read of it. */
struct sample_facts {
	const struct user_code *code; /* until the next call; NULL: not known */
	uint64_t group;               /* 0: not known */
	bool modules_read;            /* their list was read again */
};

/*
 * Call before the sample with this id is written, with its task, which `walk` has read. `code`: mappings are announced,
 * if they are by this stream; user_ip: as for mapper_task.
 */
struct sample_facts sample_stream_announce(struct sample_stream *stream, struct page_walk *walk,
                                           const struct task *task, const struct record_id *id, bool code,
                                           uint64_t user_ip);

/* A call chain of the guest, 128 words of the host's frames or of raw data, and what else a sample has. */
#define SAMPLE_STREAM_BYTES_MAX (256u + sizeof(uint64_t) * (UNWIND_CHAIN_MAX + 128u))

/* False when the ring is full: the sample is dropped, and counted in the ring. */
bool sample_stream_write(struct sample_stream *stream, const struct record_sample *sample, bool with_chain);

#endif
