// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_TEST_SUPPORT_READ_RING_H
#define VPROF_TEST_SUPPORT_READ_RING_H

/* The ring that a test has written to, and reads back. */

#include <check.h>

#include "lib/record/ring_reader.h"
#include "stream/ring.h"

static struct ring *ring;
static struct ring_reader *reader;

static inline void read_ring_open(size_t data_bytes)
{
	ring = ring_new(data_bytes, NULL);
	ck_assert_ptr_nonnull(ring);
	reader = ring_reader_open(ring_memfd(ring), NULL);
	ck_assert_ptr_nonnull(reader);
}

static inline void read_ring_close(void)
{
	ring_reader_free(reader);
	ring_free(ring);
}

#endif
