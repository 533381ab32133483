// SPDX-License-Identifier: BSD-2-Clause
/*
 * When a guest in which no kernel was found is searched again. As long as nothing is new about its vCPUs, pauses grow
 * from a second to five minutes; when something is, a second is enough. In no case do searches take more than a
 * twentieth of the time, whatever the guest changes. Times are in microseconds, of one clock.
 */
#ifndef VPROF_ATTACH_LOOK_PACE_H
#define VPROF_ATTACH_LOOK_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"

#define LOOK_PACE_SEEN 64u

/* All zero: nothing was searched yet. */
struct look_pace {
	bool searched;
	bool goes_on; /* the last search takes up where it has ended */
	int64_t ended_us, took_us, pause_us;
	uint64_t seen[LOOK_PACE_SEEN]; /* marks of the last searches; a vCPU may go to and fro between several */
	size_t next;
};

/* `marks`: of the n vCPUs by which it would be searched now (kernel_find_mark). */
bool look_pace_due(const struct look_pace *pace, int64_t now_us, const uint64_t *marks, size_t n);
/* One has ended that found nothing by these. `goes_on`: the next one takes up where it has ended. */
void look_pace_failed(struct look_pace *pace, int64_t now_us, int64_t took_us, const uint64_t *marks, size_t n,
                      bool goes_on);
/* The guest was reset: all is new. */
void look_pace_news(struct look_pace *pace);

#endif
