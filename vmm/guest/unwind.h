// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call chains of a guest, walked from outside in its memory.
 *
 * Whatever guest memory says, a walk makes at most `depth` steps and reads less than 2 KiB in each. It neither locks
 * nor allocates: it runs on the vCPU's thread between an overflow and the ring.
 */
#ifndef VPROF_GUEST_UNWIND_H
#define VPROF_GUEST_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/frame.h"
#include "guest/guest.h"
#include "guest/module.h"
#include "guest/snapshot.h"

#define UNWIND_DEPTH_MAX 127u /* as perf_event_max_stack: frames of a chain, both parts */
#define UNWIND_DEPTH_DEFAULT 64u

struct unwind_config {
	const struct orc *orc; /* kernel frames by ORC; NULL: by frame pointers */
	/* With ORC, of the thread that unwinds: the tables for code that the kernel's does not cover; NULL */
	const struct module_table *modules;
	bool user;      /* go on into user space, by frame pointers */
	unsigned depth; /* 1..UNWIND_DEPTH_MAX */
};

#define UNWIND_CHAIN_MAX (2u * UNWIND_DEPTH_MAX) /* with a mark before each frame, at worst */

/*
 * Fills `chain` in perf's form: PERF_CONTEXT_KERNEL and the kernel's frames, PERF_CONTEXT_USER and user space's,
 * innermost first; of a caller the return address, and of what was interrupted the instruction, behind a mark of its
 * own. Returns how many words; *end says why there are no more. `snapshot`: the memory that goes with `regs`, or NULL
 * while the vCPU still stands where they say.
 */
unsigned unwind(const struct unwind_config *config, struct guest *guest, const struct guest_regs *regs,
                const struct snapshot *snapshot, uint64_t chain[UNWIND_CHAIN_MAX], enum unwind_end *end);

#endif
