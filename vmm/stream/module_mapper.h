// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the loadable modules of the guest's kernel into a vCPU's ring when they are first seen: for the code of each a
 * kernel PERF_RECORD_MMAP2 ("[virtio_blk]", as perf names modules without a file), or a PERF_RECORD_MMAP without a
 * build-id. On the vCPU's thread: one read of guest memory for each sample while the list of modules does not change.
 */
#ifndef VPROF_STREAM_MODULE_MAPPER_H
#define VPROF_STREAM_MODULE_MAPPER_H

#include "guest/os.h"
#include "stream/announcer.h"

#define MODULE_MAPPER_SLOTS 1024u /* a power of two; two ranges in one slot are written again each time */

/* The vCPU's thread only. */
struct module_mapper {
	const struct os_kernel *kernel; /* with modules; NULL: nothing is written */
	struct announcer *announcer;
	struct module_table table;
	uint64_t written[MODULE_MAPPER_SLOTS]; /* hash of the last range written that begins there */
};

/* Everything is borrowed. */
void module_mapper_init(struct module_mapper *mapper, const struct os_kernel *kernel, struct announcer *announcer);

/*
 * Call before the sample with this id is written. `walk` reads the kernel's memory. Returns true when the list was read
 * again.
 */
bool module_mapper_sample(struct module_mapper *mapper, struct page_walk *walk, const struct record_id *id);

#endif
