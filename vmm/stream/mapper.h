// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the executable mappings of processes into a vCPU's ring, before the first sample of a process: a
 * PERF_RECORD_MMAP2 each, with the build-id of the mapped file where guest memory holds it, else a PERF_RECORD_MMAP.
 * When the mappings of a process change, all are written again, and a PERF_RECORD_MMAP named VPROF_UNMAPPED for each
 * that is gone.
 * On the vCPU's thread. A walk takes some ten microseconds. All processes share the budget of the announcer; one of
 * them gets at most one part in MAPPER_SHARE of it at a time, the mapping that the sample is in first, and the rest
 * with later samples. A process with ever-changing mappings is walked no more often than every MAPPER_WAIT_MIN_NS,
 * after MAPPER_BURST walks that may come at once: programs map their libraries one after the other when they start.
 */
#ifndef VPROF_STREAM_MAPPER_H
#define VPROF_STREAM_MAPPER_H

#include "guest/elf_note.h"
#include "guest/os.h"
#include "guest/task.h"
#include "guest/user_code.h"
#include "sample/table_store.h"
#include "stream/announcer.h"

#define MAPPER_PROCESSES 64u
/*
 * Attempts to find build-ids in pages that the guest has not read in yet: a program that starts soon does, but on a
 * slow host not for seconds. The wait doubles; all of them take half a minute.
 */
#define MAPPER_TRIES 40u
#define MAPPER_TRY_NS UINT64_C(1000000)
#define MAPPER_BURST 32u
#define MAPPER_WAIT_MIN_NS UINT64_C(10000000)
#define MAPPER_SHARE 4u
#define MAPPER_WAIT_MAX_NS UINT64_C(1000000000)

/* Where a process has code, and which build of a file it is of; without a build-id: 0 bytes. */
struct mapper_code {
	struct user_code user;
	struct mapper_build {
		uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
		uint8_t bytes;
	} builds[USER_CODE_RANGES];
};

struct mapper_process {
	uint64_t mm; /* 0: free */
	uint32_t pid;
	unsigned tries; /* attempts left; 0: all is written until the state changes */
	bool written;   /* everything but build-ids */
	struct os_mapping_state state;
	uint64_t from;                 /* where the next look goes on; 0: it begins anew */
	uint64_t ahead;                /* a mapping further on that is written already; 0: none */
	struct os_mapping_state begun; /* the state when the last look began anew */
	uint64_t wait_ns, not_before_ns;
	uint64_t due_ns;         /* when all walks would be over, one every MAPPER_WAIT_MIN_NS */
	bool known;              /* `code` is of a walk; else there was none */
	struct mapper_code code; /* of the last complete walk */
	unsigned tables;         /* how many there were when `code` got its tables */
};

/* The vCPU's thread only. */
struct mapper {
	const struct os_kernel *kernel;
	struct announcer *announcer;
	struct table_store *tables; /* NULL: user space is not unwound by tables */
	struct mapper_process processes[MAPPER_PROCESSES];
};

/* Everything is borrowed. */
void mapper_init(struct mapper *mapper, const struct os_kernel *kernel, struct announcer *announcer,
                 struct table_store *tables);

/*
 * Call before the sample with this id is written, with its task; `walk` is in the task's address space. user_ip: of a
 * sample in user space, which has code there; else 0. Returns where the task's process has code, until the next call;
 * NULL: not known. A task without an address space, as one that ends, has none.
 */
const struct user_code *mapper_task(struct mapper *mapper, struct page_walk *walk, const struct task *task,
                                    const struct record_id *id, uint64_t user_ip);

#endif
