// SPDX-License-Identifier: BSD-2-Clause
/*
 * A look at a guest that nothing is known of, with limits. All that finds a kernel reads memory through the guest that
 * is in the look, and counts there what it does with it: no guest makes a look longer than its limits, and any thread
 * can end it. Reads fail from then on.
 */
#ifndef VPROF_GUEST_LOOK_H
#define VPROF_GUEST_LOOK_H

#include <stdatomic.h>

#include "guest/guest.h"
#include "lib/symbol/kallsyms.h"

/* What a read costs in addition to its bytes: a system call. */
#define LOOK_READ_BYTES 2048u
/* Of one look: a second or two of CPU time in all. */
#define LOOK_BYTES_MAX (UINT64_C(1) << 30) /* four times the largest mapping of a kernel */
#define LOOK_STEPS_MAX KALLSYMS_STEPS_MAX
#define LOOK_KERNELS_MAX 4u /* copies that are made of what may be one */

/* [t] the thread that looks, [a] atomic. */
struct look {
	struct guest guest;    /* [t] first; as `of` was, with memory_read alone */
	struct guest *of;      /* [t] */
	uint64_t bytes_left;   /* [t] */
	uint64_t steps_left;   /* [t] */
	unsigned kernels_left; /* [t] */
	bool spent;            /* [t] one of them was not enough */
	atomic_bool cancelled; /* [a] */
};

/* With the limits above. `of` outlives the look. The main thread. */
void look_init(struct look *look, struct guest *of);
/* Takes `bytes` and one read from the look; false where they are not left, or it was cancelled. */
bool look_take(struct look *look, uint64_t bytes);
/* Takes one of the kernels; the same. */
bool look_take_kernel(struct look *look);
/* Any thread. */
void look_cancel(struct look *look);
bool look_cancelled(const struct look *look);
/* Whether it ended before it had looked at all: it was cancelled, or a limit was not enough. */
bool look_gave_up(const struct look *look);

#endif
