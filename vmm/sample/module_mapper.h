// SPDX-License-Identifier: BSD-2-Clause
/*
 * What stands in a vCPU's ring about the guest kernel's loadable modules: a PERF_RECORD_MMAP2 of the kernel for the
 * code of each ("[virtio_blk]", as perf calls modules without a file; PERF_RECORD_MMAP without a build-id), when it is
 * seen for the first time. On the vCPU's thread: one read of guest memory for each sample as long as the list of
 * modules stays as it is.
 */
#ifndef VPROF_SAMPLE_MODULE_MAPPER_H
#define VPROF_SAMPLE_MODULE_MAPPER_H

#include "guest/module.h"
#include "sample/announcer.h"

#define MODULE_MAPPER_SLOTS 1024u /* a power of two; two ranges that share one may be said again and again */

/* The vCPU's thread only. */
struct module_mapper {
	const struct module_layout *layout; /* NULL: nothing is said */
	struct announcer *announcer;
	struct module_table table;
	uint64_t said[MODULE_MAPPER_SLOTS]; /* what was said last of the code that begins there */
};

/* Everything is borrowed. */
void module_mapper_init(struct module_mapper *mapper, const struct module_layout *layout, struct announcer *announcer);

/* Before the sample with this id goes into the ring. `walk` has the kernel's part. True: the list was read. */
bool module_mapper_sample(struct module_mapper *mapper, struct page_walk *walk, const struct record_id *id);

#endif
