// SPDX-License-Identifier: BSD-2-Clause
/*
 * What becomes of the records of a ring: read, still in it, or lost. Their sum is what was generated, with every kind
 * of reader.
 */
#ifndef VPROF_TEST_SUPPORT_RING_ACCOUNT_H
#define VPROF_TEST_SUPPORT_RING_ACCOUNT_H

#include <check.h>

#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "stream/ring.h"

enum account_reader { ACCOUNT_SLOW, ACCOUNT_STOPPED, ACCOUNT_KILLED, ACCOUNT_READERS };

struct ring_account {
	struct ring_reader *reader; /* NULL: none is there */
	uint64_t samples, others;   /* up to the tail that a reader published */
	struct record_losses losses;
};

static inline void account_open(struct ring_account *account, const struct ring *from)
{
	account->reader = ring_reader_open(ring_memfd(from), NULL);
	ck_assert_ptr_nonnull(account->reader);
}

/* Reads `n` records at most and gives their space back. */
static inline void account_take(struct ring_account *account, unsigned n)
{
	const struct perf_event_header *record;
	size_t bytes;

	while (n-- > 0 && (record = ring_reader_next(account->reader, &bytes))) {
		record_losses_take(&account->losses, record, bytes);
		if (record->type == PERF_RECORD_SAMPLE)
			account->samples++;
		else if (record->type != PERF_RECORD_LOST && record->type != PERF_RECORD_LOST_SAMPLES)
			account->others++;
	}
	ck_assert(!ring_reader_corrupt(account->reader));
	ring_reader_release(account->reader);
}

/* One turn of a reader, while the producer goes on or stands still. */
static inline void account_turn(struct ring_account *account, const struct ring *from, enum account_reader kind)
{
	size_t bytes;

	if (kind == ACCOUNT_STOPPED)
		return;
	if (!account->reader)
		account_open(account, from);
	account_take(account, 10);
	if (kind != ACCOUNT_KILLED)
		return;
	/* What it reads now is in no file: it dies before it says that it has read it. */
	for (unsigned i = 0; i < 5 && ring_reader_next(account->reader, &bytes); i++)
		;
	ring_reader_free(g_steal_pointer(&account->reader));
}

/*
 * The producer has stopped and said what was lost: everything that was generated is there. `samples`: of the owner's
 * statistics, with those that it dropped.
 */
static inline void account_close(struct ring_account *account, const struct ring *from, uint64_t samples)
{
	const struct ring_statistics of_ring = ring_statistics(from);

	ring_reader_free(g_steal_pointer(&account->reader));
	account_open(account, from);
	account_take(account, UINT_MAX);
	ring_reader_free(g_steal_pointer(&account->reader));
	ck_assert_uint_eq(account->losses.records, of_ring.dropped);
	ck_assert_uint_eq(account->samples + account->others, of_ring.records);
	ck_assert_uint_eq(account->samples + record_losses_samples(&account->losses), samples);
	ck_assert_uint_eq(ring_view_unread(from), 0);
}

#endif
