// SPDX-License-Identifier: BSD-2-Clause
/*
 * What stands in a vCPU's ring about the executable mappings of the processes that its samples are of: a
 * PERF_RECORD_MMAP2 each, with the mapped file's build-id where the guest has it in memory (else PERF_RECORD_MMAP),
 * ahead of the first sample of a process, and all of them again when the process gets others, with a
 * PERF_RECORD_MMAP of VPROF_UNMAPPED for each that is gone. On the vCPU's thread: a process is walked once for
 * that, some ten microseconds, and one that changes all the time no more often than every MAPPER_WAIT_MIN_NS.
 */
#ifndef VPROF_SAMPLE_MAPPER_H
#define VPROF_SAMPLE_MAPPER_H

#include "guest/task.h"
#include "guest/vma.h"
#include "sample/announcer.h"

#define MAPPER_PROCESSES 64u
#define MAPPER_RANGES 64u
#define MAPPER_TRIES 7u /* for build-ids in pages that the guest has not read in yet; each after twice the time */
#define MAPPER_WAIT_MIN_NS UINT64_C(10000000)

/* Where a process has code: of its first MAPPER_RANGES mappings, in the order of their addresses. */
struct mapper_code {
	unsigned n;
	struct mapper_range {
		uint64_t start, end;
	} ranges[MAPPER_RANGES];
};

struct mapper_process {
	uint64_t mm; /* 0: free */
	uint32_t pid;
	unsigned tries; /* that are left; 0: all is said until the state changes */
	bool written;   /* all there is but build-ids */
	struct vma_state state;
	uint64_t wait_ns, not_before_ns;
	struct mapper_code code; /* as the last whole look had it */
};

/* The vCPU's thread only. */
struct mapper {
	const struct vma_layout *layout;
	struct announcer *announcer;
	struct mapper_process processes[MAPPER_PROCESSES];
};

/* Everything is borrowed. */
void mapper_init(struct mapper *mapper, const struct vma_layout *layout, struct announcer *announcer);

/* Before the sample with this id goes into the ring: its task, in whose address space `walk` is. */
void mapper_task(struct mapper *mapper, struct page_walk *walk, const struct task *task, const struct record_id *id);

#endif
