// SPDX-License-Identifier: BSD-2-Clause
#include "stream/statistics.h"

#include "stream/ring.h"

void statistics_reset(struct statistics_live *live)
{
#define X(name, help) statistic_set(&live->name, 0);
	SESSION_STATISTICS(X)
#undef X
}

/* Records may be written between the two reads of what the ring has. */
static uint64_t records_given_back(const struct ring *ring, uint64_t written)
{
	const uint64_t unread = ring_view_unread(ring);

	return written > unread ? written - unread : 0;
}

void statistics_read(const struct statistics_live *live, const struct ring *ring, struct session_statistics *out)
{
#define X(name, help) out->name = atomic_load_explicit(&live->name, memory_order_relaxed);
	SESSION_STATISTICS(X)
#undef X
	if (!ring)
		return;
	const struct ring_statistics of_ring = ring_statistics(ring);

	out->buf = of_ring.handed_over;
	out->dropbuf = of_ring.full_times;
	out->dropevt = of_ring.dropped;
	out->readevt = records_given_back(ring, of_ring.records);
}
