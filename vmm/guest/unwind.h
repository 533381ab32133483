// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call chains of a guest, walked from outside in its memory.
 *
 * Whatever guest memory says, a walk makes at most `depth` steps and reads at most UNWIND_STEP_BYTES in each. It
 * neither locks nor allocates: it runs on the vCPU's thread between an overflow and the ring.
 */
#ifndef VPROF_GUEST_UNWIND_H
#define VPROF_GUEST_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/guest.h"
#include "guest/orc.h"

#define UNWIND_DEPTH_MAX 127u /* as perf_event_max_stack: frames of a chain, both parts */
#define UNWIND_DEPTH_DEFAULT 64u

/* Why a chain is no longer; the names are the control protocol's ("chain-end", ...). */
#define UNWIND_ENDS(X)                                                                          \
	X(end, "chains that reached the first frame of their stack")                            \
	X(bad_frame, "chains cut where a frame cannot be right (no progress, no code address)") \
	X(no_entry, "chains cut at code that the unwind table does not cover")                  \
	X(depth, "chains cut at the depth limit")                                               \
	X(unreadable, "chains cut at guest memory that is not mapped or not RAM")

enum unwind_end {
#define X(name, help) UNWIND_END_##name,
	UNWIND_ENDS(X)
#undef X
		UNWIND_END_COUNT
};

struct unwind_config {
	const struct orc *orc; /* kernel frames by ORC; NULL: by frame pointers */
	bool user;             /* go on into user space, by frame pointers */
	unsigned depth;        /* 1..UNWIND_DEPTH_MAX */
};

#define UNWIND_CHAIN_MAX (UNWIND_DEPTH_MAX + 2u) /* with PERF_CONTEXT_KERNEL and PERF_CONTEXT_USER */

/*
 * Fills `chain` in perf's form: PERF_CONTEXT_KERNEL and the kernel's frames, PERF_CONTEXT_USER and user space's,
 * innermost first; of a caller the return address. Returns how many words; *end says why there are no more.
 */
unsigned unwind(const struct unwind_config *config, struct guest *guest, const struct guest_regs *regs,
                uint64_t chain[UNWIND_CHAIN_MAX], enum unwind_end *end);

#endif
