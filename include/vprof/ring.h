// SPDX-License-Identifier: BSD-2-Clause
/*
 * The shared memory of one vCPU's ring: the layout of perf's mmap ring (linux/perf_event.h, struct
 * perf_event_mmap_page).
 *
 * The first VPROF_RING_HEADER_BYTES hold a struct perf_event_mmap_page, of which only data_head, data_tail, data_offset
 * and data_size are used; data_offset equals VPROF_RING_HEADER_BYTES and data_size is a power of two. The data area
 * holds perf_event records, each 8-byte aligned, that may wrap around its end. Head and tail count bytes and only grow.
 *
 * The engine (producer) stores data_head with release order after the bytes; the reader loads it with acquire order,
 * copies what it needs, and stores data_tail with release order. Neither trusts the other: the producer keeps its own
 * head, and a tail that is ahead of it or further behind than data_size counts as a full ring.
 *
 * A record that found no room is counted. When there is room again, a PERF_RECORD_LOST with the number of such records
 * goes in, and a PERF_RECORD_LOST_SAMPLES with the number of samples among them.
 */
#ifndef VPROF_RING_H
#define VPROF_RING_H

#include <linux/perf_event.h>

#define VPROF_RING_HEADER_BYTES 4096u
#define VPROF_RING_DATA_BYTES_MIN (1u << 12)
#define VPROF_RING_DATA_BYTES_MAX (1u << 28)
#define VPROF_RING_DATA_BYTES_DEFAULT (1u << 20)

_Static_assert(sizeof(struct perf_event_mmap_page) <= VPROF_RING_HEADER_BYTES, "the header page holds perf's header");

#endif
